// What is drawn over a map: lines between the patches, and marks on single ones.

import { pinned as pinnedOf } from "../data/shown.js";
import { patchBox } from "./photo.js";

/** @import { Explained } from "../data/shown.js" */
/** @import { Box, Context } from "./overlays.js" */
/** @typedef {[x: number, y: number, width: number, height: number]} Place */

const PINNED = "#ffd60a";

/** The marks that are chosen, in a layer. */
export const marksOf = (/** @type {Explained} */ state, /** @type {number} */ of) => ({
  lines: state.grid,
  hatched: state.leaveOut ? state.explanation.outliers(of) : [],
  pinned: pinnedOf(state),
});

/**
 * @param {Context} context
 * @param {Box} box
 * @param {[number, number]} grid
 * @param {{ lines: boolean, hatched: ArrayLike<number>, pinned: number | null }} marks  hatched: a flag for each patch
 * @param {number} ratio  of the canvas's pixels to the screen's
 */
export function drawMarks(context, box, grid, { lines, hatched, pinned }, ratio) {
  if (lines) drawGrid(context, box, grid, ratio);
  for (let patch = 0; patch < hatched.length; patch++)
    if (hatched[patch]) hatch(context, patchBox(patch, box, grid), ratio);
  if (pinned !== null) outline(context, patchBox(pinned, box, grid), PINNED, ratio);
}

/**
 * @param {Context} context
 * @param {Box} box
 * @param {[number, number]} grid
 * @param {number} ratio
 */
export function drawGrid(context, [left, top, right, bottom], [rows, columns], ratio) {
  context.lineWidth = ratio;
  for (const [colour, shift] of /** @type {[string, number][]} */ ([
    ["rgba(0, 0, 0, 0.45)", 0.5],
    ["rgba(255, 255, 255, 0.35)", -0.5],
  ])) {
    context.strokeStyle = colour;
    context.beginPath();
    for (let column = 0; column <= columns; column++) {
      const x = Math.round(left + (column / columns) * (right - left)) + shift * ratio;
      context.moveTo(x, top);
      context.lineTo(x, bottom);
    }
    for (let row = 0; row <= rows; row++) {
      const y = Math.round(top + (row / rows) * (bottom - top)) + shift * ratio;
      context.moveTo(left, y);
      context.lineTo(right, y);
    }
    context.stroke();
  }
}

/**
 * @param {Context} context
 * @param {Place} place
 * @param {string} colour
 * @param {number} ratio
 */
export function outline(context, [x, y, width, height], colour, ratio) {
  context.lineWidth = 4 * ratio;
  context.strokeStyle = "rgba(0, 0, 0, 0.85)";
  context.strokeRect(x, y, width, height);
  context.lineWidth = 2 * ratio;
  context.strokeStyle = colour;
  context.strokeRect(x, y, width, height);
}

/** Around what the model saw. */
export function frame(
  /** @type {Context} */ context,
  /** @type {Box} */ [left, top, right, bottom],
  /** @type {number} */ ratio,
) {
  for (const [colour, away] of /** @type {[string, number][]} */ ([
    ["rgba(0, 0, 0, 0.6)", 1.5],
    ["rgba(255, 255, 255, 0.9)", 0.5],
  ])) {
    const by = away * ratio;
    context.lineWidth = ratio;
    context.strokeStyle = colour;
    context.strokeRect(left - by, top - by, right - left + 2 * by, bottom - top + 2 * by);
  }
}

/**
 * @param {Context} context
 * @param {Place} place
 * @param {number} ratio
 */
function hatch(context, [x, y, width, height], ratio) {
  const [step, inset] = [width / 4, 2 * ratio];
  context.save();
  context.beginPath();
  context.rect(x + inset, y + inset, width - 2 * inset, height - 2 * inset);
  context.clip();
  for (const [colour, line] of /** @type {[string, number][]} */ ([
    ["rgba(0, 0, 0, 0.7)", 3],
    ["rgba(255, 255, 255, 0.9)", 1.25],
  ])) {
    context.strokeStyle = colour;
    context.lineWidth = line * ratio;
    context.beginPath();
    context.rect(x + inset, y + inset, width - 2 * inset, height - 2 * inset);
    for (let shift = -height; shift < width; shift += step) {
      context.moveTo(x + shift, y + height);
      context.lineTo(x + shift + height, y);
    }
    context.stroke();
  }
  context.restore();
}
