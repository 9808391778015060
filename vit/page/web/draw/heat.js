// The heat overlay: values to colours, and the colours over the photo, as drawing.py does it.

import { between, FINE } from "../data/look.js";
import { contextOf } from "./photo.js";

/** @import { Scale } from "../data/maps.js" */
/** @import { Overlay } from "./overlays.js" */

const SIGNED = 768; // where the colours of signed maps start, after 256 of three bytes

/** @type {Overlay} */
export const heat = {
  title: "Heat",
  about: "Colours measure: see the scale.",

  // The part that was seen paler the more opaque the map, and grey below red and blue; the rest grey and dim.
  draw(context, { colour, grey }, [left, top, right, bottom], { values, grid, scale, look }) {
    context.save();
    context.fillStyle = "rgb(33, 33, 33)";
    context.fillRect(0, 0, colour.width, colour.height);
    context.globalAlpha = 0.4;
    context.drawImage(grey, 0, 0);
    context.beginPath();
    context.rect(left, top, right - left, bottom - top);
    context.clip();
    context.globalAlpha = 1;
    context.drawImage(colour, 0, 0);
    context.globalAlpha = look.signed ? 1 : look.opacity;
    context.drawImage(grey, 0, 0);
    context.globalAlpha = look.opacity;
    context.imageSmoothingEnabled = look.smooth;
    context.imageSmoothingQuality = "low";
    context.drawImage(heatTile(values, grid, scale, look), left, top, right - left, bottom - top);
    context.restore();
  },
};

/**
 * A small canvas with one pixel for each patch, or FINE × FINE of them.
 * @param {Float32Array} values
 * @param {[number, number]} grid
 * @param {Scale} scale
 * @param {{ colours: Uint8Array, signed?: boolean, smooth: boolean }} look
 */
export function heatTile(values, grid, [low, high], { colours, signed, smooth }) {
  const fine = smooth ? FINE : 1;
  const [height, width] = grid.map((count) => count * fine);
  const pixels = new ImageData(width, height);
  const table = signed ? SIGNED : 0;
  const times = high > low ? 256 / (high - low) : 0;
  const flat = signed ? 128 : 0;
  for (const [at, value] of between(values, grid, fine).entries()) {
    const step = times ? Math.min(255, Math.max(0, Math.floor((value - low) * times))) : flat;
    const start = table + step * 3;
    pixels.data.set([colours[start], colours[start + 1], colours[start + 2], 255], at * 4);
  }
  const canvas = new OffscreenCanvas(width, height);
  contextOf(canvas).putImageData(pixels, 0, 0);
  return canvas;
}

/** All colours of a scale, from low to high (256 × 1). */
export function colourBar(/** @type {Uint8Array} */ colours, /** @type {boolean | undefined} */ signed) {
  const pixels = new ImageData(256, 1);
  for (let step = 0; step < 256; step++) {
    const start = (signed ? SIGNED : 0) + step * 3;
    pixels.data.set([...colours.subarray(start, start + 3), 255], step * 4);
  }
  return pixels;
}
