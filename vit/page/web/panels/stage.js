// The photo with the map over it.

import { memo } from "../data/derive.js";
import { byClass, layer, maps, method, ofWholeModel, overlay, pinned, subject, values } from "../data/shown.js";
import { headName, layerName } from "../data/words.js";
import { drawGrid, drawMarks, frame, marksOf, outline } from "../draw/marks.js";
import { boxOn, patchAt, patchBox, photosOf, viewOf } from "../draw/photo.js";
import { drawMap } from "../draw/picture.js";
import { goBack, pin } from "../view.js";

/** @import { Explained } from "../data/shown.js" */
/** @import { Box } from "../draw/overlays.js" */

const LONG = 1.9; // how much longer than the stage a photo is that is scrolled
const MOST_PIXELS = 8192; // of a canvas's side

/** @type {import("../dom.js").Panel} */
export const stage = {
  markup: `
    <div class="ground" data-part="ground">
      <div class="scroller" data-part="scroller"><canvas data-part="stage" tabindex="0" role="application"
        aria-label="Photo with the map over it. Left and right: layer. Up and down: head. Shift and arrows: patch. Enter: pin the patch. Escape: back."></canvas></div>
      <img class="coming" data-part="coming" alt="" hidden>
      <p class="working" data-part="working" role="status" hidden></p>
    </div>
    <p class="title" data-part="title-line"><span data-part="title"><span class="what"><span data-part="before"></span><button type="button" class="term" data-part="who" data-term="class token" hidden></button><span data-part="after"></span></span><span class="where" data-part="where"></span></span><button type="button" class="back" data-part="back" aria-label="Back" hidden>×</button></p>`,

  style: `
    .stage-area { display: grid; grid-template-columns: minmax(0, 1fr) auto auto; gap: 6px 8px; align-items: center; align-content: start; }
    .ground { grid-column: 1 / -1; position: relative; width: 100%; height: var(--side); overflow: hidden; border-radius: 12px; background: var(--card); }
    .scroller { width: 100%; height: 100%; display: flex; align-items: safe center; justify-content: safe center; overflow: auto; scrollbar-width: thin; }
    .scroller[data-scrolls="across"] { mask-image: linear-gradient(to right, transparent, black 2em, black calc(100% - 2em), transparent); }
    .scroller[data-scrolls="down"] { mask-image: linear-gradient(to bottom, transparent, black 2em, black calc(100% - 2em), transparent); }
    .ground canvas { flex: none; display: block; cursor: crosshair; touch-action: pan-x pan-y pinch-zoom; }
    .ground canvas:focus-visible { outline-offset: -3px; }
    .coming { position: absolute; inset: 0; width: 100%; height: 100%; object-fit: cover; filter: brightness(0.75) saturate(0.8); }
    .working { position: absolute; left: 10px; bottom: 10px; padding: 0.25em 0.7em; border-radius: 8px; background: rgba(10, 12, 16, 0.82); color: white; font-size: 0.85em; }
    .title { height: 2.6em; display: flex; gap: 0.5em; align-items: center; font-size: 0.85em; line-height: 1.25; }
    .title > span, .title.tight .what { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; text-wrap: balance; }
    .title.tight > span { display: block; min-width: 0; font-size: 0.9em; line-height: 1.15; } .title.tight .where { display: block; } /* the layer is not what is cut off */
    .back { flex: none; width: 1.7em; height: 1.7em; border: 1px solid var(--line); border-radius: 7px; font-size: 1.1em; line-height: 1; }
    .back:hover { border-color: var(--mark); }
    @media (max-height: 820px) { .title { font-size: 0.76em; line-height: 1.15; height: 3.45em; } .title > span { -webkit-line-clamp: 3; } .title.tight > span { font-size: 1em; } }
    @container explorer (max-width: 639px) {
      .stage-area { grid-template-columns: minmax(0, 1fr) auto; }
      .ground { border-radius: 0; }
      .title { position: absolute; z-index: 1; left: 8px; top: 8px; max-width: calc(100% - 16px); height: auto; padding: 0.25em 0.7em; border-radius: 8px; background: rgba(10, 12, 16, 0.82); color: white; pointer-events: none; }
      .title * { color: white; } .title button { pointer-events: auto; }
    }`,

  start({ part, store, show }) {
    const [canvas, scroller] = [part("stage"), part("scroller")];
    // What a change of the map leaves as it is, so that pointing and scrubbing draw no more than the map.
    const photos = memo(photosOf);
    const viewed = memo((/** @type {Explained["explanation"]} */ explanation, /** @type {boolean} */ whole) =>
      viewOf(explanation, whole),
    );

    const draw = show((state) => {
      const { explanation, hovered, whole, story } = state;
      const { grid, picture, size } = explanation;
      const view = viewed(explanation, whole);
      const [width, height] = fit(canvas, scroller, view);
      const box = boxOn(explanation.box, view, width, height);
      const ratio = canvas.width / canvas.clientWidth || 1;
      const context = canvas.getContext("2d");
      const { strength, lines } = scene(story);
      drawMap(context, photos(picture, size, view, width, height), box, state, values(state), { strength });
      drawMarks(context, box, grid, marksOf(state, layer(state)), ratio);
      if (lines > 0) {
        context.globalAlpha = lines;
        drawGrid(context, box, grid, ratio);
        context.globalAlpha = 1;
      }
      if (whole && explanation.cropped) frame(context, box, ratio);
      if (hovered !== null) outline(context, patchBox(hovered, box, grid), "white", ratio);
      store.set({ across: width });
    });
    show((state) => {
      const { what, where } = caption(state);
      const [before, ...after] = what.split("class token");
      part("before").textContent = before;
      part("who").hidden = !after.length;
      part("who").textContent = after.length ? "class token" : "";
      part("after").textContent = after.join("class token");
      part("where").textContent = where;
      part("title").title = `${what}${where}`;
      const patch = pinned(state);
      part("back").hidden = patch === null || !(state.left || state.explanation.hasClassToken);
      tighten();
    });
    new ResizeObserver(tighten).observe(part("title-line"));
    function tighten() {
      part("title-line").classList.remove("tight");
      part("title-line").classList.toggle("tight", part("title").scrollHeight > part("title").clientHeight + 1);
    }
    store.show((state) => {
      const { explanation, coming, failed } = state;
      part("coming").hidden = !coming;
      part("title-line").style.opacity = coming || !explanation ? "0" : "1";
      if (coming && part("coming").src !== coming.src) part("coming").src = coming.src;
      const isWorking = !!explanation && !maps(/** @type {Explained} */ (state));
      part("working").hidden = !coming && !isWorking && !failed;
      part("working").textContent = failed || (coming ? "Looking …" : "Working this map out …");
    });
    new ResizeObserver(draw).observe(scroller);
    // Whose thumb chose something further down is to see what it does.
    store.watch(["coming", "explanation", "map", "chosen", "against", "token"], ({ explanation }) => {
      const { top, bottom } = part("ground").getBoundingClientRect();
      if (
        !matchMedia("(pointer: coarse)").matches ||
        !explanation ||
        (top > -0.4 * (bottom - top) && bottom < 1.4 * innerHeight && top < innerHeight / 2)
      )
        return;
      part("ground").scrollIntoView({ block: "start" });
    });
    show(({ explanation, whole }) => {
      if (!whole || !explanation) return;
      requestAnimationFrame(() => {
        // Of a panorama, what the model saw is in the middle.
        scroller.scrollTo(
          (scroller.scrollWidth - scroller.clientWidth) / 2,
          (scroller.scrollHeight - scroller.clientHeight) / 2,
        );
      });
    });
    part("coming").addEventListener("error", () => {
      part("coming").hidden = true; // what only the server can open
    });
    scroller.addEventListener("scroll", () => store.set({ hovered: null }));

    // The patch under the pointer; null beside what the model saw.
    const patchUnder = (/** @type {PointerEvent} */ { clientX, clientY }) => {
      const { explanation, whole } = /** @type {Explained} */ (store.get());
      if (!explanation) return null;
      const { left, top, width, height } = canvas.getBoundingClientRect();
      const box = boxOn(explanation.box, viewOf(explanation, whole), width, height);
      return patchAt(clientX - left, clientY - top, box, explanation.grid);
    };
    canvas.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
      if (event.pointerType !== "touch") store.set({ hovered: patchUnder(event) });
    });
    canvas.addEventListener("pointerleave", (/** @type {PointerEvent} */ event) => {
      if (event.pointerType !== "touch") store.set({ hovered: null });
    });
    canvas.addEventListener("click", (/** @type {PointerEvent} */ event) => {
      const patch = patchUnder(event);
      const first = event.pointerType === "touch" && patch !== store.get().hovered; // a finger cannot point: it taps
      store.set({ hovered: patch });
      if (patch !== null && !first) pin(store, patch);
    });
    part("back").addEventListener("click", () => goBack(store));
  },
};

/** How far the lights are down, and how plain the lines between patches are, as the opening goes on. */
function scene(/** @type {number | null} */ story) {
  if (story === null) return { strength: 1, lines: 0 };
  const rise = (/** @type {number} */ from, /** @type {number} */ to) =>
    Math.min(1, Math.max(0, (story - from) / (to - from)));
  return { strength: rise(0.2, 0.5), lines: rise(0, 0.12) * (1 - rise(0.4, 0.6)) };
}

/** In few words what is seen, and in which layer; the whole of it is spoken. */
function caption(/** @type {Explained} */ state) {
  const where = ofWholeModel(state) ? [] : [layerName(state.layer)];
  if (!byClass(state) && state.head !== "mean") where.push(headName(state.head));
  return { what: `${seen(state)}${where.length ? ", " : ""}`, where: where.join(", ") };
}

function seen(/** @type {Explained} */ state) {
  const what = subject(state);
  const ofPatch = method(state).of_token && pinned(state) !== null;
  if (overlay(state) !== "spotlight" || ofPatch) return what;
  return `Lit = ${what.charAt(0).toLowerCase()}${what.slice(1)}`;
}

/**
 * The canvas gets the view's shape, as large as there is room; a panorama's, or a tower's, as wide or as high as the
 * stage, to be scrolled.
 * @param {HTMLCanvasElement} canvas
 * @param {HTMLElement} scroller
 * @param {Box} view
 */
function fit(canvas, scroller, [left, top, right, bottom]) {
  const ratio = window.devicePixelRatio || 1;
  const [wide, tall] = [right - left, bottom - top];
  const room = [scroller.clientWidth / wide, scroller.clientHeight / tall];
  const [all, full] = [Math.min(...room), Math.max(...room)];
  const isLong = full > LONG * all;
  const times = isLong ? Math.min(full, MOST_PIXELS / ratio / Math.max(wide, tall)) : all;
  scroller.dataset.scrolls = isLong ? (wide > tall ? "across" : "down") : "";
  const [width, height] = [Math.max(1, wide * times), Math.max(1, tall * times)];
  const [across, down] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== across || canvas.height !== down) [canvas.width, canvas.height] = [across, down];
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  return [across, down];
}
