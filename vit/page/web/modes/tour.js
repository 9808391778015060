// How it works: the paper's path, page by page, on the photo that is shown, with one of its patches followed.

import { memo } from "../data/derive.js";
import { pinned, tokenMethod } from "../data/shown.js";
import { make, opens } from "../dom.js";
import { load } from "../loading.js";
import { choose } from "../view.js";
import { keepAsking } from "./asking.js";
import { NUMBERS } from "./tour-numbers.js";
import { PAGES } from "./tour-pages.js";
import { SCENES, sceneOf } from "./tour-stage.js";
import { coloured, fill, numbers } from "./tour-words.js";

/** @import { Explained } from "../data/shown.js" */
/** @import { Panel } from "../dom.js" */
/** @import { Mode } from "../modes.js" */

const REGISTERS = "#registers"; // after a model's source, as models.py has it
const AROUND = 4; // lines of code before and after the one that is meant
const SWIPE = 60; // pixels
const ATTENTION = 3; // its step of the pipeline

const placeOf = (/** @type {Explained} */ { at }) =>
  Math.max(
    0,
    PAGES.findIndex(({ name }) => name === at),
  );
const pageOf = (/** @type {Explained} */ state) => PAGES[placeOf(state)];

/** The patch that is followed: the pinned one, or the one that matters most. */
const followed = (/** @type {Explained} */ state) => pinned(state) ?? figuresOf(state)?.about.patch ?? null;
const figuresOf = (/** @type {Explained} */ { told }) => told.ask_figures ?? null;
const headOf = (/** @type {Explained} */ { head }) => (typeof head === "number" ? head : 0);

/** The trace of the patch that is followed, in the layer and head that are chosen. */
function traceOf(/** @type {Explained} */ state) {
  const trace = state.told.ask_trace ?? null;
  const { layer, head, patch } = trace?.about ?? {};
  return layer === state.layer && head === headOf(state) && patch === followed(state) ? trace : null;
}

/** @type {Panel} */
const card = {
  markup: `
    <article class="tour" data-part="tour" aria-labelledby="tour-title">
      <p class="quiet" data-part="tour-place"></p>
      <h2 id="tour-title" data-part="tour-title" tabindex="-1"></h2>
      <p class="tour-text" data-part="tour-text"></p>
      <div class="tour-equation" data-part="tour-equation" tabindex="0" role="group" aria-label="Equation"></div>
      <div class="tour-numbers" data-part="tour-numbers"></div>
      <p><button type="button" class="link quiet" data-part="tour-code"></button></p>
      <nav class="tour-nav" aria-label="Pages">
        <button type="button" class="pill" data-part="tour-back">Back</button>
        <ol data-part="tour-dots"></ol>
        <button type="button" class="pill main" data-part="tour-next">Next</button>
      </nav>
    </article>
    <div class="tour-source" popover data-part="tour-source" role="dialog" aria-label="vit/model.py"><pre tabindex="0" data-part="tour-lines"></pre></div>`,

  style: `
    .tour { display: grid; grid-template-columns: minmax(0, 1fr); gap: 10px; align-content: start; }
    .tour h2 { font-size: 1.6em; line-height: 1.15; font-weight: 700; outline: none; }
    .tour > .quiet { font-size: 0.85em; }
    .tour :is(.tour-text, .vector, th) var { font-weight: 700; font-family: var(--font-mono); font-style: normal; }
    .tour-equation { overflow: auto hidden; font-size: 1.15em; padding: 2px 0; }
    .tour-equation:empty, .tour-numbers:empty { display: none; }
    .tour-numbers { display: grid; gap: 10px; min-width: 0; }
    .tour-numbers .wide { overflow-x: auto; }
    .tour-numbers table { margin: 0; border: 0; border-collapse: collapse; font-size: 0.82em; font-variant-numeric: tabular-nums; width: 100%; }
    .tour-numbers tr { border: 0 !important; }
    .tour-numbers :is(td, th) { padding: 2px 6px; text-align: right; border: 0; border-bottom: 1px solid var(--line); font-weight: 400; white-space: nowrap; }
    .tour-numbers th:first-child, .tour-numbers td:first-child { text-align: left; padding-left: 0; }
    .tour-numbers tbody tr:last-child > * { border-bottom: 0; }
    .tour-numbers .summed tbody tr:last-child > * { font-weight: 600; }
    .tour-numbers > p { font-size: 0.85em; }
    .tour-numbers .pill { justify-self: start; }
    .vector { margin: 0; display: grid; grid-template-columns: 3em 1fr; gap: 1px 8px; align-items: center; }
    .vector canvas { width: 100%; height: 1.1em; image-rendering: pixelated; border-radius: 4px; }
    .vector .quiet { grid-column: 2; font-size: 0.78em; font-variant-numeric: tabular-nums; white-space: pre; overflow: hidden; text-overflow: ellipsis; }
    .filters { display: grid; grid-template-columns: repeat(14, 1fr); gap: 3px; }
    .filters canvas { width: 100%; image-rendering: pixelated; border-radius: 3px; }
    .features { display: grid; grid-template-columns: repeat(6, 1fr); gap: 6px; }
    .features figure { margin: 0; text-align: center; font-size: 0.72em; }
    .features canvas { width: 100%; image-rendering: pixelated; border-radius: 5px; display: block; }
    .lengths { display: grid; gap: 4px; font-size: 0.88em; }
    .lengths p { display: flex; gap: 0.3em; align-items: center; }
    .lengths i { order: -1; flex: none; height: 0.8em; border-radius: 3px; background: currentColor; }
    .tour-nav { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: 10px; padding-top: 4px; }
    .tour-nav ol { flex: 1 0 100%; order: -1; display: flex; flex-wrap: wrap; justify-content: space-between; }
    .tour-nav li button { width: 24px; height: 24px; display: grid; place-items: center; border-radius: 50%; max-width: 100%; }
    .tour-nav li button::before { content: ""; width: 9px; height: 9px; border-radius: 50%; background: var(--line); }
    .tour-nav li:not([aria-current]) button:hover::before { background: var(--accent); }
    .tour-nav [aria-current] button::before { background: var(--mark); width: 13px; height: 13px; }
    .tour-nav .pill[disabled] { visibility: hidden; }
    .tour-source { max-width: min(96vw, 64em); }
    .tour-source pre { font: 0.82em/1.55 var(--font-mono); overflow-x: auto; margin: 0; }
    .tour-source mark { background: var(--chosen); color: inherit; display: inline-block; min-width: 100%; }
    --x: #9a3412; --e: #0e7490; --p: #a21caf; --z: #6d28d9; --q: #1d4ed8; --k: #b91c1c; --v: #047857; --a: #a16207; --y: #0f766e;
    .dark & { --x: #fdba74; --e: #67e8f9; --p: #f0abfc; --z: #c4b5fd; --q: #93c5fd; --k: #fca5a5; --v: #6ee7b7; --a: #fde047; --y: #5eead4; }
    .x { color: var(--x) !important; } .e { color: var(--e) !important; } .p { color: var(--p) !important; } .z { color: var(--z) !important; } .q { color: var(--q) !important; }
    .k { color: var(--k) !important; } .v { color: var(--v) !important; } .a { color: var(--a) !important; } .y { color: var(--y) !important; }
    &[data-presenting] .tour-numbers table { font-size: 0.7em; }
    @container explorer (max-width: 639px) {
      .tour-nav { display: contents; }
      .tour-nav .pill, .tour-nav::before { position: sticky; bottom: 3.3em; grid-row: 8; grid-column: 1; } /* on a band above the modes */
      .tour-nav .pill { justify-self: start; padding: 0.7em 1.6em; }
      .tour-nav .main { justify-self: end; }
      .tour-nav::before { content: ""; background: var(--body-background-fill); box-shadow: 0 0 0 9px var(--body-background-fill); }
      .tour-numbers table { font-size: 0.78em; }
      .tour-numbers :is(td, th) { padding-inline: 3px; }
    }`,

  start(context) {
    const { part, root, store, show } = context;
    const current = () => /** @type {Explained} */ (store.get());
    const go = (/** @type {number} */ place) => {
      if (place < 0 || place >= PAGES.length) return;
      const { name, begins } = PAGES[place];
      const layer = begins && { first: 0, last: current().explanation.layers - 1 }[begins];
      const isAhead = place > placeOf(current());
      store.set({ at: name, playing: false, ...(isAhead && layer !== undefined && { layer }) });
      part("tour-title").focus({ preventScroll: true });
      const bottom = root.querySelector('[data-place="top"]')?.getBoundingClientRect().bottom ?? 0;
      const stays = getComputedStyle(root.querySelector('[data-place="stage"]') ?? root).position === "sticky";
      if (bottom < 0 || stays) window.scrollBy(0, bottom); // the stage is whole, and the text begins
    };
    const turn = (/** @type {number} */ by) => go(placeOf(current()) + by);
    const act = {
      give: () => load(context, "choose_model", { model: current().explanation.model, registers: true }),
      takeBack: () => load(context, "choose_model", { model: current().explanation.model.slice(0, -REGISTERS.length) }),
      takeAway: () => choose(store, { mode: "what-if", at: `grey:${figuresOf(current())?.about.patch}` }),
    };

    // What was shown before the tour is shown again after it.
    /** @type {{ url: string, settings: Partial<Explained> } | null} */
    let before = null;
    store.show(({ mode, explanation }) => {
      if (!explanation || (mode === "tour") === !!before) return;
      const { map, token, layer, head } = current();
      if (mode === "tour") before = { url: explanation.url, settings: { map, token, layer, head } };
      else {
        if (before?.url === explanation.url && mode === "look") store.set(before.settings);
        before = null;
      }
    });
    keepAsking(context, "ask_figures", () => ({}));
    keepAsking(context, "ask_trace", (state) => {
      const patch = followed(state);
      return patch === null ? null : { layer: state.layer, head: headOf(state), patch };
    });

    part("tour-dots").append(
      ...PAGES.map(({ title }, place) => {
        const row = make("li");
        row.append(make("button", { type: "button", title: title.replace(/\{\w+\}/, "L"), onclick: () => go(place) }));
        row.firstElementChild.ariaLabel = `Page ${place + 1}`;
        return row;
      }),
    );
    show((state) => {
      const place = placeOf(state);
      const { title, markup } = PAGES[place];
      part("tour-place").textContent = `How it works · ${place + 1} of ${PAGES.length}`;
      part("tour-title").textContent = fill(title, numbers(state));
      part("tour-equation").replaceChildren(
        ...(markup ? [document.createRange().createContextualFragment(markup)] : []),
      );
      for (const number of part("tour-equation").querySelectorAll("mn"))
        number.textContent = fill(number.textContent, numbers(state));
      part("tour-back").disabled = place === 0;
      part("tour-next").disabled = place === PAGES.length - 1;
      for (const [each, row] of [...part("tour-dots").children].entries())
        if (each === place) row.setAttribute("aria-current", "page");
        else row.removeAttribute("aria-current");
    });
    show((state) => {
      part("tour-text").replaceChildren(...coloured(pageOf(state).text, numbers(state)));
    });
    show((state) => {
      const make = NUMBERS[pageOf(state).name];
      const known = { state, figures: figuresOf(state), trace: traceOf(state), act };
      part("tour-numbers").replaceChildren(...(make?.(known) ?? []).filter((one) => one !== null));
      part("tour").dataset.ready = String(!!known.figures && !!known.trace);
    });
    show((state) => {
      // The stage shows the patch's look, or the class token's.
      const { follows, covered } = pageOf(state);
      const { name } = tokenMethod(state.explanation);
      const patch = followed(state);
      if (follows ? patch === null : covered) return;
      if (state.map !== name) choose(store, { map: name });
      else if (follows && pinned(state) === null) choose(store, { token: state.explanation.tokenOf(patch) });
      if (follows && typeof state.head !== "number") choose(store, { head: 0 });
    });
    show((state) => {
      const { code } = pageOf(state);
      const lines = /** @type {string[]} */ (figuresOf(state)?.about.source.split("\n") ?? []);
      const line = lines.findIndex((text) => text.trim() === code);
      part("tour-code").hidden = line < 0;
      part("tour-code").textContent = `vit/model.py, line ${line + 1}`;
      const shown = lines.slice(Math.max(0, line - AROUND), line + AROUND + 1);
      part("tour-lines").replaceChildren(
        ...shown.map((text, place) => {
          const number = Math.max(0, line - AROUND) + place;
          return make(number === line ? "mark" : "span", {
            textContent: `${String(number + 1).padStart(4)}  ${text}\n`,
          });
        }),
      );
    });
    opens(part("tour-code"), part("tour-source"));
    part("tour-back").addEventListener("click", () => turn(-1));
    part("tour-next").addEventListener("click", () => turn(1));

    const isHere = (/** @type {Element} */ target) =>
      part("tour").contains(target) || // or where no other thing has the keys
      target.matches('[data-part="stage"]') ||
      (context.slot === "a" && target === document.body);
    window.addEventListener(
      "keydown",
      (/** @type {KeyboardEvent} */ event) => {
        if (store.get().mode !== "tour" || !isHere(/** @type {Element} */ (event.target))) return;
        if (event.key === "Escape" && !store.get().presenting) event.stopPropagation(); // the patch stays
        const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -1, PageDown: 1 }[event.key];
        if (!step || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
        event.stopPropagation();
        event.preventDefault();
        turn(step);
      },
      { capture: true },
    );
    let from = 0;
    part("tour").addEventListener("touchstart", (/** @type {TouchEvent} */ { touches }) => {
      from = touches[0].clientX;
    });
    part("tour").addEventListener("touchend", (/** @type {TouchEvent} */ { changedTouches, target }) => {
      const moved = changedTouches[0].clientX - from;
      const scrolls = /** @type {Element} */ (target).closest(".wide, .tour-equation");
      if (Math.abs(moved) > SWIPE && !scrolls) turn(moved < 0 ? 1 : -1);
    });
  },
};

/** @type {Panel} */
const scene = {
  markup: `
    <canvas class="tour-canvas" data-part="tour-stage" aria-hidden="true"></canvas>
    <p class="title tour-caption" data-part="tour-caption"></p>`,
  style: `
    .tour-canvas { position: absolute; pointer-events: none; border-radius: 10px; }
    &[data-mode="tour"] :is(.overlays, .more, .back), &[data-covered] :is([data-part="title-line"], .scale, .bubble) { display: none; }
    &[data-mode="tour"] .title { grid-column: 1 / -1; }
    &[data-covered] [data-part="stage"] { opacity: 0; } /* no edge of it shows */
    &[data-still~="layers"] .layers-area, &[data-still~="heads"] .columns-area { visibility: hidden; }
    @container explorer (max-width: 1099px) {
      &[data-still~="layers"] .layers-area, &[data-still~="heads"] .columns-area { display: none; }
    }
    @container explorer (max-width: 639px) {
      .tour-canvas { border-radius: 0; }
      &[data-mode="tour"] .layers-area { order: 0; }
      &[data-mode="tour"] .layers > :is(.round, .now) { display: none; }
    }`,

  start({ part, root, store, show }) {
    const canvas = part("tour-stage");
    const ground = memo(sceneOf);
    const draw = show((state) => {
      const below = /** @type {HTMLCanvasElement} */ (root.querySelector('[data-part="stage"]'));
      const { name, covered, apart } = pageOf(state);
      const { across, whole } = state; // drawn anew when the stage is
      part("tour-caption").hidden = !covered;
      part("tour-caption").textContent = covered ? fill(covered, numbers(state)) : "";
      canvas.hidden = !SCENES[name] || !across;
      canvas.style.pointerEvents = apart ? "auto" : "none";
      if (canvas.hidden) return;
      Object.assign(canvas.style, {
        left: `${below.offsetLeft}px`,
        top: `${below.offsetTop}px`,
        width: below.style.width,
        height: below.style.height,
      });
      [canvas.width, canvas.height] = [below.width, below.height];
      const patch = followed(state) ?? state.explanation.middlePatch;
      const { box, photos } = ground(state.explanation, whole, canvas.width, canvas.height);
      const known = { figures: figuresOf(state), trace: traceOf(state), patch, box, photos };
      SCENES[name]({ ...known, context: canvas.getContext("2d"), state, ratio: canvas.width / below.clientWidth || 1 });
    });
    new ResizeObserver(draw).observe(root);
    store.show((state) => {
      const page = state.mode === "tour" && state.explanation ? pageOf(/** @type {Explained} */ (state)) : null;
      root.toggleAttribute("data-covered", !!page?.covered);
      // What would change nothing here is not shown.
      const still = { layers: page && !page.follows && !page.begins, heads: page && !page.follows };
      root.dataset.still = Object.entries(still)
        .flatMap(([name, is]) => (is ? name : []))
        .join(" ");
      store.set({ step: page ? (page.step ?? ATTENTION) : null });
    });
  },
};

/** @type {Mode} */
export const mode = { takes: ["side"], places: { side: [card], stage: [scene] } };
