// Which map is right? Patches go, or come, in the order of each map, and the class's probability is watched.

import { memo } from "../data/derive.js";
import { percent, plain } from "../data/words.js";
import { make } from "../dom.js";
import { patchBox, photosOf } from "../draw/photo.js";
import { cover } from "./cover.js";

/** @import { File } from "../data/safetensors.js" */
/** @import { Explained } from "../data/shown.js" */
/** @import { Panel } from "../dom.js" */
/** @import { Mode } from "../modes.js" */

const KINDS = /** @type {const} */ (["deletion", "insertion"]);
const [WIDTH, HEIGHT, LEFT, BOTTOM] = [300, 130, 34, 22]; // of a drawing
const COLOURS = ["c1", "c2", "c3", "c4", "c5", "c6"];
const GREY = "rgb(128, 128, 128)";

/** The curves that are here. */
const found = (/** @type {Explained} */ { told }) => /** @type {File[]} */ (told.curves ?? []);
const of = (/** @type {File[]} */ curves, /** @type {string} */ kind) =>
  curves.filter(({ about }) => about.kind === kind && about.method !== "random");
const random = (/** @type {File[]} */ curves, /** @type {string} */ kind) =>
  curves.filter(({ about }) => about.kind === kind && about.method === "random");

/** Where in a curve one is: "deletion:rollout:7" in the address. */
function chosen(/** @type {Explained} */ state) {
  const [kind, method, place] = state.at.split(":");
  const curve = found(state).find(({ about }) => about.kind === kind && about.method === method);
  const point = Number(place);
  return curve && point >= 0 && point < curve.about.counts.length ? { curve, point } : null;
}

/** @type {Panel} */
const card = {
  markup: `
    <section class="curves" data-part="curves" aria-label="Which map is right?">
      <p>If a map is right, the answer falls fast when its patches go grey, the most relevant first, and rises fast when they alone come back.</p>
      <p class="ways"><button type="button" class="pill main" data-part="run">Try all maps</button> <button type="button" class="pill" data-part="stop" hidden>Stop</button> <progress data-part="curves-share" max="1" aria-label="Done" hidden></progress></p>
      <p data-part="verdict" role="status"></p>
      <div data-part="charts"></div>
      <p class="wide-row" data-part="along" hidden><label>Along the curve <input type="range" data-part="point" min="0" step="1"></label> <strong data-part="point-text" role="status"></strong></p>
      <table class="moved" data-part="areas" hidden><thead><tr><td></td><th scope="col">area, they go<br><span class="quiet">low is right</span></th><th scope="col">area, they come<br><span class="quiet">high is right</span></th></tr></thead><tbody data-part="area-rows"></tbody></table>
    </section>`,

  style: `
    .curves { display: grid; grid-template-columns: minmax(0, 1fr); gap: 10px; }
    .curves .ways { display: flex; gap: 10px; align-items: center; } .curves progress { flex: 1; height: 8px; appearance: none; border: 0; border-radius: 4px; overflow: hidden; background: var(--line); }
    .curves progress::-webkit-progress-bar { background: var(--line); } .curves progress::-webkit-progress-value { background: var(--accent); } .curves progress::-moz-progress-bar { background: var(--accent); }
    .curves h3 { margin: 4px 0; } .curves svg { width: 100%; height: auto; display: block; touch-action: pan-y; user-select: none; cursor: crosshair; } .curves > * { overflow-anchor: none; } /* what comes keeps the place */
    .curves text { fill: var(--quiet); font-size: 8px; } .curves .axis { stroke: var(--line); fill: none; }
    .curves .band { fill: color-mix(in srgb, var(--body-text-color) 14%, transparent); }
    .curves polyline { fill: none; stroke-width: 2; stroke: var(--c); } .curves polyline.now { stroke-width: 4; } .curves circle { fill: var(--c); }
    .c1 { --c: #1d4ed8; } .c2 { --c: #b91c1c; } .c3 { --c: #047857; } .c4 { --c: #a21caf; } .c5 { --c: #a16207; } .c6 { --c: #0e7490; }
    .dark & { .c1 { --c: #93c5fd; } .c2 { --c: #fca5a5; } .c3 { --c: #6ee7b7; } .c4 { --c: #f0abfc; } .c5 { --c: #fde047; } .c6 { --c: #67e8f9; } }
    .curves table { width: 100%; margin: 0; border: 0; border-collapse: collapse; font-size: 0.9em; font-variant-numeric: tabular-nums; }
    .curves table :is(td, th) { padding: 3px 6px; border: 0; border-bottom: 1px solid var(--line); text-align: right; font-weight: 400; }
    .curves table :is(td, th):first-child { text-align: left; padding-left: 0; } .curves th button { font-weight: 600; text-align: left; color: var(--c) !important; min-height: 24px; } .curves tr { border: 0; }
    .wide-row label { display: grid; } .wide-row input { width: 100%; accent-color: var(--accent); }
    @container explorer (max-width: 639px) { .curves text { font-size: 10px; } }`,

  start({ part, store, ask: { ask, cancel, read }, show }) {
    const current = () => /** @type {Explained} */ (store.get());
    const tell = (/** @type {object} */ changes) => store.set({ told: { ...current().told, ...changes } });
    let run = 0;

    const start = async () => {
      const mine = ++run;
      tell({ curves: [], running: true });
      await ask("ask_curves", {}, ({ url }) =>
        read(url, (file) => file).then((file) => mine === run && tell({ curves: [...found(current()), file] })),
      );
      if (mine === run) tell({ running: false });
    };
    part("run").addEventListener("click", start);
    let isLinked = true;
    show(({ at, told, explanation, wanted }) => {
      // An address that names a point of a curve asks for the curves.
      if (isLinked && at && !told.curves && explanation.predictions.length && wanted === explanation.url) start();
      isLinked = false;
    });
    part("stop").addEventListener("click", () => {
      run++;
      cancel("cancel_curves", "ask_curves");
      tell({ running: false });
    });
    show(({ told, explanation }) => {
      const curves = told.curves ?? [];
      part("run").hidden = !!told.running || !explanation.predictions.length;
      part("stop").hidden = part("curves-share").hidden = !told.running;
      part("run").textContent = curves.length ? "Again" : "Try all maps";
      if (curves.length) part("curves-share").value = curves.length / curves[0].about.of;
      part("curves").dataset.count = String(curves.length);
    });
    const methods = (/** @type {File[]} */ curves) => [...new Set(curves.map(({ about }) => about.method))];
    const colourOf = (/** @type {File[]} */ curves, /** @type {string} */ method) =>
      COLOURS[methods(curves).indexOf(method) % COLOURS.length];

    show((state) => {
      const curves = found(state);
      const now = chosen(state);
      part("charts").replaceChildren(
        ...(curves.length ? KINDS : []).flatMap((kind) => {
          const title = `The answer as the most relevant patches ${kind === "deletion" ? "go" : "come"}`;
          return [make("h3", { textContent: title }), chart(kind, curves, now, colourOf, pick)];
        }),
      );
    });
    show((state) => {
      const curves = found(state);
      const rows = methods(curves.filter(({ about }) => about.method !== "random")).map((method) => {
        const row = make("tr", { className: colourOf(curves, method) }, { method });
        const both = KINDS.map((kind) => of(curves, kind).find(({ about }) => about.method === method));
        const name = make("th", { scope: "row" });
        const onclick = () => store.set({ at: `deletion:${method}:0` });
        name.append(make("button", { type: "button", textContent: both[0]?.about.title ?? method, onclick }));
        row.append(name, ...both.map((curve) => make("td", { textContent: curve?.about.area.toFixed(3) ?? "" })));
        return row;
      });
      const spans = KINDS.map((kind) => {
        const areas = random(curves, kind).map(({ about }) => about.area);
        return areas.length ? `${Math.min(...areas).toFixed(3)} to ${Math.max(...areas).toFixed(3)}` : "";
      });
      const last = make("tr", {}, { method: "random" });
      last.append(
        make("th", { scope: "row", textContent: "random (the grey band)" }),
        ...spans.map((textContent) => make("td", { textContent })),
      );
      part("areas").hidden = !curves.length;
      part("area-rows").replaceChildren(...rows, last);
      const [best, rest] = state.told.running ? ["", ""] : verdict(curves);
      part("verdict").replaceChildren(make("strong", { textContent: best }), rest);
    });
    show((state) => {
      const now = chosen(state);
      part("along").hidden = !now;
      if (!now) return;
      const { curve, point } = now;
      const { about, tensors } = curve;
      part("point").max = about.counts.length - 1;
      part("point").value = point;
      const best = plain(state.explanation.predictions[0].label);
      const what = about.kind === "deletion" ? "gone" : "there";
      part("point-text").textContent =
        `${about.title}, ${percent(tensors.shares.data[point])} ${what}: it says ${plain(about.answers[point])}; ${best} ${percent(tensors.probabilities.data[point])}`;
    });
    const pick = (/** @type {string} */ kind, /** @type {string} */ method, /** @type {number} */ point) =>
      store.set({ at: `${kind}:${method}:${point}` });
    part("point").addEventListener("input", () => {
      const [kind, method] = current().at.split(":");
      pick(kind, method, Number(part("point").value));
    });
  },
};

/**
 * What the curves show, the best map first, and when they show nothing.
 * @returns {[best: string, rest: string]}
 */
function verdict(/** @type {File[]} */ curves) {
  if (KINDS.some((kind) => !of(curves, kind).length || !random(curves, kind).length)) return ["", ""];
  const [gone, there] = KINDS.map((kind) => {
    const lower = kind === "deletion" ? 1 : -1; // a right map's area is small as patches go, and large as they come
    const area = (/** @type {File} */ { about }) => lower * about.area;
    const least = Math.min(...random(curves, kind).map(area));
    const better = of(curves, kind).filter((curve) => area(curve) < least);
    return better.sort((one, other) => area(one) - area(other)).map(({ about }) => about.title);
  });
  if (!gone.length && !there.length)
    return ["", "On this photo no map does better than chance: these curves show nothing."];
  const said = (/** @type {string[]} */ names) => names.join(", ") || "none";
  const best = gone[0] === there[0] ? `${gone[0]} does best both ways. ` : "";
  const rest = `Better than chance, the best first: when patches go, ${said(gone)}; when they come, ${said(there)}. One photo proves little, and grey itself can mislead.`;
  return [best, rest];
}

/**
 * A drawing of the curves of a kind, with the band of random ones.
 * @param {string} kind
 * @param {File[]} curves
 * @param {{ curve: File, point: number } | null} now
 * @param {(curves: File[], method: string) => string} colourOf
 * @param {(kind: string, method: string, point: number) => void} pick
 */
function chart(kind, curves, now, colourOf, pick) {
  const across = (/** @type {number} */ share) => LEFT + share * (WIDTH - LEFT - 6);
  const down = (/** @type {number} */ share) => HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - 6);
  const svg = element("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "data-part": `chart-${kind}` });
  svg.setAttribute("aria-label", "Probability of the answer by share of patches; the areas are in the table");
  svg.append(element("path", { class: "axis", d: `M${LEFT},6 V${HEIGHT - BOTTOM} H${WIDTH - 6}` }));
  for (const share of [0, 0.5, 1]) {
    svg.append(text(percent(share), 2, down(share) + 4));
    svg.append(text(percent(share), Math.min(across(share) - 8, WIDTH - 34), HEIGHT - 8));
  }
  const chance = random(curves, kind).map(({ tensors }) => tensors.probabilities.data);
  if (chance.length) {
    const shares = random(curves, kind)[0].tensors.shares.data;
    const edge = (/** @type {(...all: number[]) => number} */ most) =>
      Array.from(shares, (share, at) => `${across(share)},${down(most(...chance.map((data) => data[at])))}`);
    svg.append(
      element("polygon", { class: "band", points: [...edge(Math.max), ...edge(Math.min).reverse()].join(" ") }),
    );
  }
  for (const { about, tensors } of of(curves, kind)) {
    const points = Array.from(
      tensors.shares.data,
      (share, at) => `${across(share)},${down(tensors.probabilities.data[at])}`,
    );
    const isNow = now?.curve.about.kind === kind && now.curve.about.method === about.method;
    const group = element("g", { class: colourOf(curves, about.method) });
    const line = element("polyline", {
      points: points.join(" "),
      "data-method": about.method,
      class: isNow ? "now" : "",
    });
    group.append(line);
    if (isNow && now) {
      const [cx, cy] = points[now.point].split(",");
      group.append(element("circle", { cx, cy, r: "5" }));
    }
    svg.append(group);
  }
  const drag = (/** @type {PointerEvent} */ event) => {
    if (event.type === "pointermove" && !event.buttons) return;
    const all = of(curves, kind);
    const { left, top, width, height } = svg.getBoundingClientRect();
    const [x, y] = [((event.clientX - left) / width) * WIDTH, ((event.clientY - top) / height) * HEIGHT];
    if (!all.length) return;
    const count = all[0].about.counts.length - 1;
    const point = Math.min(count, Math.max(0, Math.round(((x - LEFT) / (WIDTH - LEFT - 6)) * count)));
    const distance = (/** @type {File} */ { tensors }) => Math.abs(down(tensors.probabilities.data[point]) - y);
    const held = event.type === "pointermove" && now?.curve.about.kind === kind ? now.curve : null;
    const nearest = held ?? all.reduce((one, other) => (distance(other) < distance(one) ? other : one));
    pick(kind, nearest.about.method, point);
  };
  svg.addEventListener("pointerdown", /** @type {any} */ (drag));
  svg.addEventListener("pointermove", /** @type {any} */ (drag));
  return svg;
}

const SVG = new DOMParser().parseFromString("<svg/>", "text/html").querySelector("svg")?.namespaceURI ?? null;

/** @param {string} name @param {Record<string, string>} attributes */
function element(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

/** @param {string} content @param {number} x @param {number} y */
function text(content, x, y) {
  const made = element("text", { x: String(x), y: String(y) });
  made.textContent = content;
  return made;
}

/** @type {Panel} */
const stage = {
  markup: `<canvas class="curves-canvas" data-part="curves-stage" aria-hidden="true"></canvas><p class="title" data-part="curves-title"></p>`,
  style: `
    .curves-canvas { position: absolute; pointer-events: none; border-radius: 12px; }
    @container explorer (min-width: 1100px) { &[data-mode="curves"] .stage-area { grid-row: stage-start / layers-end; align-self: start; position: sticky; top: 8px; } } /* seen from every curve */
    @container explorer (max-width: 639px) { .curves-canvas { border-radius: 0; } }
    &[data-mode="curves"] :is([data-part="title-line"], .overlays, .more, .scale, .bubble) { display: none; }`,

  start({ part, root, show }) {
    const canvas = part("curves-stage");
    const photos = memo(photosOf);
    const draw = show((state) => {
      const { explanation, across } = state;
      const now = chosen(state);
      part("curves-title").textContent = now ? "The photo at this point" : "The photo";
      if (!across) return;
      const [left, top, right, bottom] = explanation.box;
      cover(canvas, root, [right - left, bottom - top]);
      const context = canvas.getContext("2d");
      context.drawImage(
        photos(explanation.picture, explanation.size, explanation.box, canvas.width, canvas.height).colour,
        0,
        0,
      );
      if (!now) return;
      const { order } = now.curve.tensors;
      const count = now.curve.about.counts[now.point];
      const grey = now.curve.about.kind === "deletion" ? order.data.subarray(0, count) : order.data.subarray(count);
      context.fillStyle = GREY;
      for (const patch of grey) {
        const [x, y, wide, tall] = patchBox(patch, [0, 0, canvas.width, canvas.height], explanation.grid);
        const [from, above] = [Math.floor(x), Math.floor(y)]; // without a seam
        context.fillRect(from, above, Math.ceil(x + wide) - from, Math.ceil(y + tall) - above);
      }
    });
    new ResizeObserver(draw).observe(root);
  },
};

/** @type {Mode} */
export const mode = { takes: ["side", "columns", "layers"], places: { side: [card], stage: [stage] } };
