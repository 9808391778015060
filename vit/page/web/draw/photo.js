// The photo at a canvas's size, and where in it the model looked.

/** @import { Box } from "./overlays.js" */
/** @typedef {{ colour: OffscreenCanvas, grey: OffscreenCanvas }} Photos */

/**
 * In colour and in grey.
 * @param {ImageBitmap} picture
 * @param {number} width
 * @param {number} height
 * @returns {Photos}
 */
export function photosOf(picture, width, height) {
  const [colour, grey] = [new OffscreenCanvas(width, height), new OffscreenCanvas(width, height)];
  const context = /** @type {OffscreenCanvasRenderingContext2D} */ (
    colour.getContext("2d", { willReadFrequently: true })
  );
  context.imageSmoothingQuality = "high";
  context.drawImage(picture, 0, 0, width, height);
  const pixels = context.getImageData(0, 0, width, height);
  const data = pixels.data;
  for (let at = 0; at < data.length; at += 4) {
    data[at] = data[at + 1] = data[at + 2] = 0.299 * data[at] + 0.587 * data[at + 1] + 0.114 * data[at + 2];
  }
  grey.getContext("2d")?.putImageData(pixels, 0, 0);
  return { colour, grey };
}

/**
 * A box on the photo, on a canvas of another size.
 * @param {Box} box
 * @param {[number, number]} size  the photo's
 * @param {number} width
 * @param {number} height
 * @returns {Box}
 */
export function boxOn([left, top, right, bottom], size, width, height) {
  const [across, down] = [width / size[0], height / size[1]];
  return [left * across, top * down, right * across, bottom * down];
}

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
