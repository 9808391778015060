// What if: patches painted over, moved or taken out, heads and layers switched off; what was is beside what becomes.

import { Explanation } from "../data/explanation.js";
import { layer as layerOf } from "../data/shown.js";
import { layerName, percent, plain } from "../data/words.js";
import { check, make } from "../dom.js";
import { drawMap, small } from "../draw/picture.js";
import { keepAsking } from "./asking.js";
import { none, write } from "./changes.js";
import { after, changesOf, look, questionOf, shownAs } from "./what-if-shown.js";
import { paint } from "./what-if-stage.js";
import { strip } from "./what-if-strip.js";

/** @import { Explained } from "../data/shown.js" */
/** @import { Panel } from "../dom.js" */
/** @import { Mode } from "../modes.js" */
/** @import { Changes } from "./changes.js" */

const BRUSHES = { grey: "Grey", blurred: "Blur", removed: "Take out", swapped: "Swap", back: "Put back" };
const POSITIONS = { kept: "as they are", dropped: "dropped", shuffled: "shuffled" };
const TURNS = { 0: "0°", 90: "90°", 180: "180°", 270: "270°" };
const CROPS = { 1: "all", 0.75: "¾", 0.5: "½", 0.25: "¼" };
const SIZES = { 0.5: "½", 0.75: "¾", 1: "1", 1.5: "1½" };
const SIDE = 320; // pixels of the two pictures

/** @type {Panel} */
const card = {
  markup: `
    <section class="what-if" data-part="what-if" aria-label="What if">
      <div class="before-after">
        <figure><canvas data-part="before-picture" aria-hidden="true"></canvas><figcaption><span class="quiet">before</span> <strong data-part="before-answer"></strong></figcaption></figure>
        <figure><canvas data-part="after-picture" aria-hidden="true"></canvas><figcaption><span class="quiet">now</span> <strong data-part="after-answer" role="status"></strong></figcaption></figure>
      </div>
      <table class="moved" data-part="moved"><thead><tr><td></td><th scope="col">before</th><th scope="col">now</th></tr></thead><tbody data-part="moved-rows"></tbody></table>
      <p class="ways"><button type="button" class="pill" data-part="undo">Undo</button> <button type="button" class="pill" data-part="reset">Reset</button></p>
      <fieldset class="choices" data-part="brush"><legend>Brush: drag over the photo</legend></fieldset>
      <p class="ways"><button type="button" class="pill" data-part="shuffle">Shuffle all patches</button></p>
      <fieldset class="choices" data-part="positions"><legend>Positions</legend></fieldset>
      <details><summary>Turn, crop, size</summary>
        <fieldset class="choices" data-part="turn"><legend>Turn</legend></fieldset>
        <fieldset class="choices" data-part="crop"><legend>The middle: how much of it</legend></fieldset>
        <fieldset class="choices" data-part="size"><legend>Size, times the model’s own</legend></fieldset>
      </details>
      <details data-part="switches"><summary>Switch off layers and heads</summary><div class="switches" data-part="switch-rows"></div></details>
      <details data-part="challenges"><summary>Two challenges</summary>
        <p class="ways"><button type="button" class="pill" data-part="fool">Fool it</button> <button type="button" class="pill" data-part="keep">Keep it right</button></p>
        <p data-part="challenge-text"></p>
        <p class="ways"><strong data-part="count" role="status"></strong> <button type="button" class="link" data-part="greedy" hidden>What does relevance need?</button> <span data-part="greedy-text" role="status"></span></p>
      </details>
    </section>`,

  style: `
    .what-if { display: grid; grid-template-columns: minmax(0, 1fr); gap: 10px; }
    .before-after { display: grid; grid-template-columns: 1fr 1fr; gap: 12px; }
    .before-after figure { margin: 0; min-width: 0; }
    .before-after canvas { width: 100%; display: block; border-radius: 10px; background: var(--card); }
    .before-after figcaption { overflow-wrap: anywhere; line-height: 1.25; margin-top: 4px; }
    .moved { width: 100%; margin: 0; border: 0; border-collapse: collapse; font-size: 0.9em; font-variant-numeric: tabular-nums; }
    .moved tr { border: 0 !important; }
    .moved :is(td, th) { padding: 3px 6px; border: 0; border-bottom: 1px solid var(--line); text-align: right; font-weight: 400; }
    .moved :is(td, th):first-child { text-align: left; padding-left: 0; overflow-wrap: anywhere; }
    .what-if .ways { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; }
    .what-if summary { cursor: pointer; padding: 4px 0; }
    .what-if details > * + * { margin-top: 8px; }
    .switches { display: grid; gap: 3px; max-height: 16em; overflow: auto; font-size: 0.85em; }
    .switches div { display: flex; flex-wrap: wrap; gap: 4px; }
    .switches button { min-width: 28px; min-height: 26px; padding: 0 7px; border: 1px solid var(--line); border-radius: 6px; }
    .switches button:first-child { min-width: 6em; text-align: left; }
    .switches button[aria-pressed="true"] { background: var(--chosen); border-color: var(--mark); text-decoration: line-through; }
    .what-if .pill[aria-pressed="true"] { border-color: var(--mark); background: var(--chosen); }
    @container explorer (max-width: 639px) {
      .before-after figure { display: flex; gap: 8px; } .before-after canvas { width: 40%; flex: none; align-self: start; }
    }`,

  start(context) {
    const { part, root, slot, store, show } = context;
    /** @type {string[]} */
    const past = [];
    const current = () => /** @type {Explained} */ (store.get());
    const now = () => changesOf(current().at);
    const change = (/** @type {Partial<Changes>} */ changes) => {
      const at = write({ ...now(), ...changes });
      if (at === current().at) return;
      past.push(current().at);
      store.set({ at });
    };
    const reframe = (/** @type {Partial<Changes>} */ changes) =>
      change({
        ...none(),
        positions: now().positions,
        heads: now().heads,
        layers: now().layers,
        ...keptFrame(),
        ...changes,
      });
    const keptFrame = () => ({ turn: now().turn, crop: now().crop, size: now().size });

    keepAsking(context, "ask_what_if", questionOf, async (file, url) => ({
      watched: file.about.watched,
      explanation: new Explanation(
        file,
        await createImageBitmap(new Blob([/** @type {any} */ (file.tensors.photo.data)], { type: "image/jpeg" })),
        url,
      ),
    }));

    const group = (
      /** @type {string} */ name,
      /** @type {Record<string, string>} */ options,
      /** @type {(value: string) => void} */ choose,
    ) => {
      const order = Object.entries(options).sort(([one], [other]) =>
        name === "brush" || name === "positions" ? 0 : Number(one) - Number(other),
      );
      part(name).append(
        ...order.map(([value, text]) => {
          const label = make("label");
          const onchange = () => choose(value);
          label.append(
            make("input", { type: "radio", name: `${slot}-what-if-${name}`, value, onchange }),
            make("span", { textContent: text }),
          );
          return label;
        }),
      );
    };
    group("brush", BRUSHES, (brush) => store.set({ told: { ...current().told, brush } }));
    group("positions", POSITIONS, (positions) =>
      change({ positions: /** @type {Changes["positions"]} */ (positions) }),
    );
    group("turn", TURNS, (turn) => reframe({ turn: Number(turn) }));
    group("crop", CROPS, (crop) => reframe({ crop: Number(crop) }));
    group("size", SIZES, (size) => reframe({ size: Number(size) }));
    show(({ at, told }) => {
      const changes = changesOf(at);
      for (const name of /** @type {const} */ (["positions", "turn", "crop", "size"])) check(part(name), changes[name]);
      check(part("brush"), told.brush ?? "grey");
      part("undo").disabled = !past.length;
      part("reset").disabled = !at;
    });
    part("undo").addEventListener("click", () => store.set({ at: past.pop() ?? "" }));
    part("reset").addEventListener("click", () => change(none()));
    part("shuffle").addEventListener("click", () => change({ shuffled: (now().shuffled ?? 0) + 1 }));

    show((state) => {
      const [one, other] = [state.explanation, after(state)];
      const answer = ({ predictions: [best] } = one) =>
        best ? `${plain(best.label)}, ${percent(best.probability)}` : "";
      part("before-answer").textContent = answer(one);
      part("after-answer").textContent = answer(other);
      const labels = [...new Set([...one.predictions, ...other.predictions].map(({ label }) => label))].slice(0, 6);
      const watched = state.told.ask_what_if?.watched ?? [];
      const share = (/** @type {Explanation} */ { predictions }, /** @type {string} */ label) => {
        const found = predictions.find((each) => each.label === label)?.probability;
        const known =
          predictions === one.predictions
            ? undefined
            : watched[one.predictions.findIndex((each) => each.label === label)];
        if ((found ?? known) !== undefined) return percent(found ?? known);
        const least = percent(predictions.at(-1)?.probability ?? 0); // it is not among the likeliest
        return least.startsWith("<") ? least : `< ${least}`;
      };
      part("moved").hidden = !labels.length;
      part("moved-rows").replaceChildren(
        ...labels.map((label) => {
          const row = make("tr");
          row.append(make("th", { textContent: plain(label), scope: "row" }));
          for (const each of [one, other]) row.append(make("td", { textContent: share(each, label) }));
          return row;
        }),
      );
      part("what-if").dataset.ready = String(
        state.told.ask_what_if?.key === JSON.stringify([one.url, questionOf(state)]),
      );
    });
    show((state) => {
      for (const [name, explanation] of /** @type {[string, Explanation][]} */ ([
        ["before-picture", state.explanation],
        ["after-picture", after(state)],
      ])) {
        const ready = small(explanation, SIDE);
        const values = look(state, explanation, layerOf(state));
        const canvas = part(name);
        [canvas.width, canvas.height] = [ready.width, ready.height];
        drawMap(canvas.getContext("2d"), ready.photos, ready.box, shownAs(state, explanation), values);
      }
    });

    show(({ explanation: { layers, heads } }) => {
      const off = (/** @type {string} */ text, /** @type {object} */ data, /** @type {() => void} */ onclick) =>
        make(
          "button",
          { type: "button", textContent: text, ariaLabel: `${text} off`, onclick },
          /** @type {any} */ (data),
        );
      part("switch-rows").replaceChildren(
        ...Array.from({ length: layers }, (_, layer) => {
          const row = make("div");
          const toggleLayer = () =>
            change({
              layers: now().layers.includes(layer)
                ? now().layers.filter((each) => each !== layer)
                : [...now().layers, layer],
            });
          row.append(off(layerName(layer), { layer }, toggleLayer));
          for (let head = 0; head < heads; head++) {
            const is = ([one, other] = [0, 0]) => one === layer && other === head;
            const toggle = () =>
              change({
                heads: now().heads.some(is) ? now().heads.filter((pair) => !is(pair)) : [...now().heads, [layer, head]],
              });
            const button = off(String(head + 1), { layer, head }, toggle);
            button.ariaLabel = `${layerName(layer)}, head ${head + 1} off`;
            row.append(button);
          }
          return row;
        }),
      );
    });
    show(({ at, explanation: { layers } }) => {
      const changes = changesOf(at);
      if (!layers) return;
      for (const button of part("switch-rows").querySelectorAll("button")) {
        const { layer, head } = button.dataset;
        const isOff =
          head === undefined
            ? changes.layers.includes(Number(layer))
            : changes.heads.some(([one, other]) => one === Number(layer) && other === Number(head));
        button.setAttribute("aria-pressed", isOff);
      }
    });

    const every = () => Array.from({ length: after(current()).patches }, (_, patch) => patch);
    part("fool").addEventListener("click", () => change({ ...none(), ...keptFrame(), goal: "fool" }));
    part("keep").addEventListener("click", () => {
      change({ ...none(), ...keptFrame(), goal: "keep", grey: every() });
      store.set({ told: { ...current().told, brush: "back" } });
    });
    show((state) => {
      const { goal, grey, blurred, removed } = changesOf(state.at);
      const [before, other] = [state.explanation, after(state)];
      part("challenges").hidden = !before.predictions.length;
      if (goal) part("challenges").open = true;
      part("fool").setAttribute("aria-pressed", goal === "fool");
      part("keep").setAttribute("aria-pressed", goal === "keep");
      const best = before.predictions[0] ? plain(before.predictions[0].label) : "";
      part("challenge-text").textContent =
        goal === "keep"
          ? `All is grey. Put back as few patches as you can until it says ${best} again.`
          : goal === "fool"
            ? `Paint over as few patches as you can until it no longer says ${best}.`
            : "";
      const gone = new Set([...grey, ...blurred, ...removed]).size;
      const right = other.predictions[0]?.index === before.predictions[0]?.index;
      const used = goal === "keep" ? other.patches - gone : gone;
      const done = goal === "keep" ? right : !right;
      part("count").textContent = goal
        ? `${used} ${used === 1 ? "patch" : "patches"}${done && used ? ": done!" : ""}`
        : "";
      part("greedy").hidden = !goal;
    });
    part("greedy").addEventListener("click", async () => {
      const asked = { ...now() };
      part("greedy-text").textContent = "…";
      const [file] = await context.ask.ask("ask_fewest", asked);
      const found = file && (await context.ask.read(file.url, ({ about }) => about.patches));
      if (now().goal !== asked.goal) return;
      part("greedy-text").textContent = found
        ? `The greedy answer by relevance: ${found.length}.`
        : "No number does it.";
      part("greedy-text").dataset.patches = found ? found.join(" ") : "";
    });
    show(({ at }) => {
      part("greedy-text").textContent = "";
      part("greedy-text").dataset.goal = changesOf(at).goal;
    });
    root.addEventListener("stroke", () => past.push(current().at)); // a stroke is undone as a whole
    store.watch(["explanation"], () => past.splice(0));
  },
};

/** @type {Mode} */
export const mode = { takes: ["side", "columns"], places: { side: [card], stage: [paint], layers: [strip] } };
