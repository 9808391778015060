// The photo with the map over it.

import { memo } from "../data/derive.js";
import { layer, maps, scaleOf, title, values } from "../data/shown.js";
import { coloursOf, marksOf } from "../draw/figure.js";
import { drawMarks, outline } from "../draw/marks.js";
import { OVERLAYS } from "../draw/overlays.js";
import { boxOn, patchAt, patchBox, photosOf } from "../draw/photo.js";
import { pin } from "../view.js";

/** @import { Explanation } from "../data/explanation.js" */
/** @import { Explained } from "../data/shown.js" */
/** @import { Box } from "../draw/overlays.js" */
/** @import { Photos } from "../draw/photo.js" */

const TALLEST = 560;

/** @type {import("../dom.js").Panel} */
export const stage = {
  markup: `
    <p class="title" data-part="title"></p>
    <div class="stage" data-part="stage">
      <canvas data-part="photo" tabindex="0" role="application"
        aria-label="Photo with the map over it. Left and right: layer. Up and down: head. Shift and arrows: patch. Enter: pin the patch. Escape: back."></canvas>
      <p class="working" data-part="working" hidden>Working this map out …</p>
    </div>`,

  style: `
    .title { font-weight: 600; margin-bottom: 6px; }
    .stage { position: relative; display: flex; justify-content: center; background: var(--background-fill-secondary); border-radius: 8px; }
    .stage canvas { display: block; cursor: crosshair; border-radius: 8px; touch-action: manipulation; }
    .working { position: absolute; left: 12px; top: 12px; padding: 4px 10px; border-radius: 7px; background: rgba(0, 0, 0, 0.8); color: white; font-size: 14px; }
    @container (max-width: 760px) { .title { margin: 0; } }`,

  start({ part, store, show }) {
    const canvas = part("photo");
    // What a change of the map leaves as it is, so that pointing and scrubbing draw no more than the map.
    const photos = memo(photosOf);
    const boxOf = memo(
      (/** @type {Explanation} */ { box, size }, /** @type {number} */ width, /** @type {number} */ height) =>
        boxOn(box, size, width, height),
    );
    const under = memo(
      (
        /** @type {string} */ overlay,
        /** @type {Photos} */ photos,
        /** @type {Box} */ box,
        /** @type {number} */ opacity,
      ) => OVERLAYS[overlay].under(photos, box, opacity),
    );

    const draw = show((state) => {
      const { explanation, overlay, smooth, hovered } = state;
      const { grid, picture, size } = explanation;
      const shown = values(state);
      const [width, height] = fit(canvas, part("stage").clientWidth, size);
      const box = boxOf(explanation, width, height);
      const ratio = canvas.width / canvas.clientWidth || 1;
      const opacity = shown ? state.opacity / 100 : 0;
      const context = canvas.getContext("2d");
      context.drawImage(under(overlay, photos(picture, width, height), box, opacity), 0, 0);
      if (shown) {
        const look = { colours: coloursOf(state), signed: maps(state)?.signed, smooth };
        OVERLAYS[overlay].over(context, box, { values: shown, grid, scale: scaleOf(state, shown), look, opacity });
      }
      drawMarks(context, box, grid, marksOf(state, layer(state)), ratio);
      if (hovered !== null) outline(context, patchBox(hovered, box, grid), "white", ratio);
      store.set({ across: width });
    });
    show((state) => {
      part("title").textContent = title(state);
      part("working").hidden = !!maps(state);
    });
    new ResizeObserver(draw).observe(part("stage"));

    // The patch under the pointer; null beside what the model saw.
    const patchUnder = (/** @type {PointerEvent} */ { clientX, clientY }) => {
      const { explanation } = /** @type {Explained} */ (store.get());
      const { left, top, width, height } = canvas.getBoundingClientRect();
      const box = boxOn(explanation.box, explanation.size, width, height);
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
  },
};

/**
 * The canvas gets the photo's own shape, as large as there is room.
 * @param {HTMLCanvasElement} canvas
 * @param {number} room
 * @param {[number, number]} size
 */
function fit(canvas, room, [width, height]) {
  const ratio = window.devicePixelRatio || 1;
  const tallest = Math.max(240, Math.min(TALLEST, window.innerHeight * 0.75));
  const shown = Math.max(1, Math.min(room, (tallest * width) / height));
  const [across, down] = [Math.round(shown * ratio), Math.max(1, Math.round(((shown * height) / width) * ratio))];
  if (canvas.width !== across || canvas.height !== down) [canvas.width, canvas.height] = [across, down];
  canvas.style.width = `${shown}px`;
  return [across, down];
}
