// What is drawn over a map: lines between the patches, and marks on single ones.

import { patchBox } from "./photo.js";

/** @import { Box, Context } from "./overlays.js" */
/** @typedef {[x: number, y: number, width: number, height: number]} Place */

const PINNED = "#4ade80";

/**
 * @param {Context} context
 * @param {Box} box
 * @param {[number, number]} grid
 * @param {{ lines: boolean, crosses: ArrayLike<number>, pinned: number | null }} marks  crosses: a flag for each patch
 * @param {number} ratio  of the canvas's pixels to the screen's
 */
export function drawMarks(context, box, grid, { lines, crosses, pinned }, ratio) {
  if (lines) drawGrid(context, box, grid, ratio);
  for (let patch = 0; patch < crosses.length; patch++)
    if (crosses[patch]) cross(context, patchBox(patch, box, grid), ratio);
  if (pinned !== null) outline(context, patchBox(pinned, box, grid), PINNED, ratio);
}

/**
 * @param {Context} context
 * @param {Box} box
 * @param {[number, number]} grid
 * @param {number} ratio
 */
function drawGrid(context, [left, top, right, bottom], [rows, columns], ratio) {
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

/**
 * @param {Context} context
 * @param {Place} place
 * @param {number} ratio
 */
function cross(context, [x, y, width, height], ratio) {
  const inset = Math.min(width, height) / 4;
  for (const [colour, line] of /** @type {[string, number][]} */ ([
    ["black", 4],
    ["white", 2],
  ])) {
    context.strokeStyle = colour;
    context.lineWidth = line * ratio;
    context.beginPath();
    context.moveTo(x + inset, y + inset);
    context.lineTo(x + width - inset, y + height - inset);
    context.moveTo(x + width - inset, y + inset);
    context.lineTo(x + inset, y + height - inset);
    context.stroke();
  }
}
