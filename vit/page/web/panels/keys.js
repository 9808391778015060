// The keyboard: arrows move through layers, heads and patches.

import { byClass, patch } from "../data/shown.js";
import { choose, goBack, pin } from "../view.js";

/** @import { Explained } from "../data/shown.js" */

/** @type {Record<string, [across: number, down: number]>} */
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** @type {import("../dom.js").Panel} */
export const keys = {
  markup: "",

  start({ store, root }) {
    window.addEventListener("keydown", (event) => {
      const target = /** @type {Element} */ (event.target);
      if (
        event.ctrlKey ||
        event.metaKey ||
        event.altKey ||
        target.matches("input[type=text], textarea, [contenteditable]")
      )
        return;
      const { presenting, slot } = store.get();
      if (slot === "a" && event.key === "p") store.set({ presenting: !presenting });
      if (presenting && event.key === "Escape") store.set({ presenting: false });
      if (presenting && !root.contains(target)) follow(event);
    });
    root.addEventListener("keydown", follow);

    function follow(/** @type {KeyboardEvent} */ event) {
      const state = store.get();
      const target = /** @type {Element} */ (event.target);
      if (!isExplained(state) || event.ctrlKey || event.metaKey || event.altKey || target.closest("[popover], dialog"))
        return;
      if (event.key === "Escape") return goBack(store);
      if (target.matches("canvas") && (event.key === "Enter" || event.key === " ") && state.hovered !== null) {
        event.preventDefault();
        return pin(store, state.hovered);
      }
      if (!(event.key in ARROWS) || target.matches("input") || target.closest("[data-place=photos]")) return; // which have their own use for arrows
      event.preventDefault();
      const [across, down] = ARROWS[event.key];
      choose(store, event.shiftKey ? movePatch(state, across, down) : move(state, across, down));
    }
  },
};

/** @returns {state is Explained} */
const isExplained = (/** @type {{ explanation: unknown }} */ state) => !!state.explanation;

const step = (/** @type {number} */ value, /** @type {number} */ by, /** @type {number} */ count) =>
  Math.min(count - 1, Math.max(0, value + by));

/**
 * To another layer, and to another head or class.
 * @param {Explained} state
 * @param {number} across
 * @param {number} down
 */
function move(state, across, down) {
  const { layers, columns, predictions } = state.explanation;
  if (across) return { layer: step(state.layer, across, layers) };
  if (byClass(state)) return { chosen: step(state.chosen, down, predictions.length) };
  return { head: columns[step(columns.indexOf(state.head), down, columns.length)] };
}

/**
 * @param {Explained} state
 * @param {number} across
 * @param {number} down
 */
function movePatch(state, across, down) {
  const { grid, middlePatch } = state.explanation;
  const [rows, columns] = grid;
  const from = patch(state) ?? middlePatch;
  const row = step(Math.floor(from / columns), down, rows);
  return { hovered: row * columns + step(from % columns, across, columns) };
}
