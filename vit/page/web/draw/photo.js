// The photo at a canvas's size, and where in it the model looked.

/** @import { Box } from "./overlays.js" */
/** @typedef {{ colour: OffscreenCanvas, dim: OffscreenCanvas, pale: OffscreenCanvas, grey: OffscreenCanvas }} Photos */

// What lies over a photo where it is not read, and how much of the photo is left, by night and by day. What is lit has to
// stand out: over a black photo the night is lighter, and over a white one the day is darker, both evenly in between.
const NIGHT = { left: 0.23, dark: { from: 0.1, ground: [68, 74, 94] }, light: { from: 0.4, ground: [16, 18, 26] } };
const DAY = { left: 0.4, dark: { from: 0.25, ground: [168, 174, 186] }, light: { from: 0.65, ground: [98, 105, 121] } };

/**
 * A part of the photo: in colour, in grey, and in grey with the lights down, or with too much light.
 * @param {ImageBitmap} picture
 * @param {[number, number]} size  the photo's, whose pixels the view counts
 * @param {Box} view
 * @param {number} width
 * @param {number} height
 * @returns {Photos}
 */
export function photosOf(picture, size, view, width, height) {
  const [left, top, right, bottom] = boxOn(view, [0, 0, size[0], size[1]], picture.width, picture.height);
  const colour = new OffscreenCanvas(width, height);
  const context = contextOf(colour, true);
  context.imageSmoothingQuality = "high";
  context.drawImage(picture, left, top, right - left, bottom - top, 0, 0, width, height);
  const pixels = context.getImageData(0, 0, width, height);
  const data = pixels.data;
  let sum = 0;
  for (let at = 0; at < data.length; at += 4) {
    const luma = 0.299 * data[at] + 0.587 * data[at + 1] + 0.114 * data[at + 2];
    sum += luma;
    data[at] = luma;
    data[at + 1] = luma;
    data[at + 2] = luma;
  }
  const grey = new OffscreenCanvas(width, height);
  contextOf(grey).putImageData(pixels, 0, 0);
  const lightness = sum / (data.length / 4) / 255;
  return { colour, grey, dim: under(grey, NIGHT, lightness), pale: under(grey, DAY, lightness) };
}

/**
 * @param {OffscreenCanvas} grey
 * @param {typeof DAY} veil
 * @param {number} lightness  of the photo, from 0 to 1
 */
function under(grey, { left, dark, light }, lightness) {
  const part = Math.min(1, Math.max(0, (lightness - dark.from) / (light.from - dark.from)));
  const ground = `rgb(${dark.ground.map((value, at) => value + (light.ground[at] - value) * part)})`;
  const made = new OffscreenCanvas(grey.width, grey.height);
  const context = contextOf(made);
  context.fillStyle = ground;
  context.fillRect(0, 0, made.width, made.height);
  context.globalAlpha = left;
  context.drawImage(grey, 0, 0);
  return made;
}

/** The context of a canvas; `read` where its pixels are asked for. */
export const contextOf = (/** @type {OffscreenCanvas} */ canvas, read = false) =>
  /** @type {OffscreenCanvasRenderingContext2D} */ (canvas.getContext("2d", { willReadFrequently: read }));

/**
 * A box on the photo, on a canvas that shows a part of it.
 * @param {Box} box
 * @param {Box} view
 * @param {number} width
 * @param {number} height
 * @returns {Box}
 */
export function boxOn([left, top, right, bottom], view, width, height) {
  const [across, down] = [width / (view[2] - view[0]), height / (view[3] - view[1])];
  return [(left - view[0]) * across, (top - view[1]) * down, (right - view[0]) * across, (bottom - view[1]) * down];
}

/**
 * The part of a photo that is shown: what the model saw, or all of it.
 * @param {{ box: Box, size: [number, number] }} explanation
 * @param {boolean} whole
 * @returns {Box}
 */
export const viewOf = ({ box, size }, whole) => (whole ? [0, 0, size[0], size[1]] : box);

/**
 * The patch at a place; null beside what the model saw.
 * @param {number} x
 * @param {number} y
 * @param {Box} box
 * @param {[number, number]} grid
 */
export function patchAt(x, y, [left, top, right, bottom], [rows, columns]) {
  const across = Math.floor(((x - left) / (right - left)) * columns);
  const down = Math.floor(((y - top) / (bottom - top)) * rows);
  return across >= 0 && across < columns && down >= 0 && down < rows ? down * columns + across : null;
}

/**
 * @param {number} patch
 * @param {Box} box
 * @param {[number, number]} grid
 * @returns {[x: number, y: number, width: number, height: number]}
 */
export function patchBox(patch, [left, top, right, bottom], [rows, columns]) {
  const width = (right - left) / columns;
  const height = (bottom - top) / rows;
  return [left + (patch % columns) * width, top + Math.floor(patch / columns) * height, width, height];
}
