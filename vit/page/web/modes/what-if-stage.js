// The stage of "What if": the photo to paint on.

import { memo } from "../data/derive.js";
import { patchName } from "../data/words.js";
import { outline } from "../draw/marks.js";
import { patchAt, patchBox, photosOf } from "../draw/photo.js";
import { write } from "./changes.js";
import { cover } from "./cover.js";
import { after, changesOf } from "./what-if-shown.js";

/** @import { Explained } from "../data/shown.js" */
/** @import { Panel } from "../dom.js" */
/** @import { Changes } from "./changes.js" */

const GREY = "rgb(128, 128, 128)";

const isPainted = (/** @type {Changes} */ { grey, blurred, removed }, /** @type {number} */ patch) =>
  [grey, blurred, removed].some((set) => set.includes(patch));

/** @type {Panel} */
export const paint = {
  markup: `
    <canvas class="paint" data-part="paint" tabindex="0" role="application" aria-label="The photo, to paint on. Arrows: another patch. Enter: paint it."></canvas>
    <p class="title" data-part="paint-title"></p>`,
  style: `
    .paint { position: absolute; touch-action: none; cursor: cell; border-radius: 12px; background: var(--card); }
    .paint:focus-visible { outline-offset: -3px; }
    @container explorer (max-width: 639px) { .paint { border-radius: 0; } }
    &[data-mode="what-if"] :is([data-part="title-line"], .overlays, .more, .scale, .bubble) { display: none; }`,

  start({ part, root, store, show }) {
    const canvas = part("paint");
    const photos = memo(photosOf);
    const current = () => /** @type {Explained} */ (store.get());
    let isDown = false;
    /** @type {number | null} */
    let last = null; // under the brush
    /** @type {number | null} */
    let first = null; // of two to swap

    const draw = show((state) => {
      const below = /** @type {HTMLCanvasElement} */ (root.querySelector('[data-part="stage"]'));
      const changes = changesOf(state.at);
      const { picture, size, grid, box } = after(state);
      if (!state.across || !below.clientWidth) return;
      const ratio = cover(canvas, root, size);
      const context = canvas.getContext("2d");
      const isNew = after(state) !== state.explanation;
      const view = isNew ? /** @type {[number, number, number, number]} */ ([0, 0, size[0], size[1]]) : box;
      const { colour } = photos(picture, size, view, canvas.width, canvas.height);
      context.drawImage(colour, 0, 0);
      const all = /** @type {[number, number, number, number]} */ ([0, 0, canvas.width, canvas.height]);
      const moved = changes.shuffled !== null || changes.swapped.length > 0;
      // Until the answer is here, the stroke itself.
      for (const patch of moved ? [] : changes.grey) fill(context, patchBox(patch, all, grid), GREY);
      for (const patch of changes.removed) {
        const [x, y, across, down] = patchBox(patch, all, grid);
        fill(context, [x, y, across, down], state.dark ? "#101218" : "#fafaf9");
        context.strokeStyle = "rgba(128, 128, 128, 0.7)";
        context.lineWidth = ratio;
        context.strokeRect(x + ratio, y + ratio, across - 2 * ratio, down - 2 * ratio);
      }
      if (state.hovered !== null) outline(context, patchBox(state.hovered, all, grid), "white", ratio);
      if (first !== null) outline(context, patchBox(first, all, grid), "#ffd60a", ratio);
      const count = new Set([...changes.grey, ...changes.blurred, ...changes.removed]).size;
      part("paint-title").textContent = count
        ? `${count} of ${grid[0] * grid[1]} patches painted`
        : state.told.brush === "swapped"
          ? "Choose two patches, one after the other"
          : "Paint on the photo";
    });
    const sized = new ResizeObserver(draw);
    for (const each of [root, root.querySelector('[data-part="ground"]')]) if (each) sized.observe(each);

    const patchUnder = (/** @type {PointerEvent} */ { clientX, clientY }) => {
      const { left, top, width, height } = canvas.getBoundingClientRect();
      return patchAt(clientX - left, clientY - top, [0, 0, width, height], after(current()).grid);
    };
    const stroke = (/** @type {number | null} */ patch) => {
      if (patch === null) return;
      const { at, told } = current();
      const [changes, brush] = [changesOf(at), told.brush ?? "grey"];
      if (brush === "swapped") {
        const one = first;
        first = one === null ? patch : null;
        if (one !== null && one !== patch) set({ ...changes, swapped: [...changes.swapped, [one, patch]] });
        return draw();
      }
      const without = (/** @type {number[]} */ set) => set.filter((each) => each !== patch);
      const next = {
        ...changes,
        grey: without(changes.grey),
        blurred: without(changes.blurred),
        removed: without(changes.removed),
      };
      if (brush !== "back") next[/** @type {"grey"} */ (brush)] = [...next[/** @type {"grey"} */ (brush)], patch];
      if (brush === "back" ? isPainted(changes, patch) : !changes[/** @type {"grey"} */ (brush)].includes(patch))
        set(next);
    };
    const set = (/** @type {Changes} */ changes) => {
      if (changes.removed.length < after(current()).patches) store.set({ at: write(changes) });
    };
    canvas.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
      isDown = true;
      canvas.setPointerCapture(event.pointerId);
      root.dispatchEvent(new CustomEvent("stroke"));
      last = patchUnder(event);
      stroke(last);
    });
    canvas.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
      const patch = patchUnder(event);
      store.set({ hovered: patch });
      if (!isDown || (current().told.brush ?? "grey") === "swapped") return;
      for (const each of between(last ?? patch, patch, after(current()).grid[1])) stroke(each);
      last = patch;
    });
    for (const end of ["pointerup", "pointercancel"])
      canvas.addEventListener(end, () => {
        isDown = false;
      });
    canvas.addEventListener("pointerleave", () => store.set({ hovered: null }));
    canvas.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      const [rows, columns] = after(current()).grid;
      const from = current().hovered ?? Math.floor(rows / 2) * columns + Math.floor(columns / 2);
      const steps = /** @type {Record<string, number>} */ ({
        ArrowLeft: -1,
        ArrowRight: 1,
        ArrowUp: -columns,
        ArrowDown: columns,
      });
      event.stopPropagation();
      if (event.key in steps) {
        event.preventDefault();
        const to = from + steps[event.key];
        const stays = Math.abs(steps[event.key]) === 1 && Math.floor(to / columns) !== Math.floor(from / columns);
        const hovered = to < 0 || to >= rows * columns || stays ? from : to;
        store.set({ hovered, said: patchName(hovered, [rows, columns]) });
      } else if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        root.dispatchEvent(new CustomEvent("stroke"));
        stroke(from);
      }
    });
  },
};

/**
 * The patches on the way from one to another, which a fast hand leaps over.
 * @param {number | null} from
 * @param {number | null} to
 * @param {number} columns
 */
function between(from, to, columns) {
  if (from === null || to === null) return [];
  const [down, across] = [Math.floor(to / columns) - Math.floor(from / columns), (to % columns) - (from % columns)];
  const steps = Math.max(Math.abs(down), Math.abs(across), 1);
  return Array.from({ length: steps }, (_, at) => {
    const share = (at + 1) / steps;
    return (
      (Math.floor(from / columns) + Math.round(down * share)) * columns + (from % columns) + Math.round(across * share)
    );
  });
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {[number, number, number, number]} place
 * @param {string} colour
 */
function fill(context, place, colour) {
  context.fillStyle = colour;
  context.fillRect(...place);
}
