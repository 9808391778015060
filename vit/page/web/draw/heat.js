// The heat overlay: values to colours, and the colours over the photo, as drawing.py does it.

/** @import { Scale } from "../data/maps.js" */
/** @import { Box, Overlay } from "./overlays.js" */
/** @typedef {{ colours: Uint8Array, signed?: boolean, smooth: boolean }} Look */

const FINE = 8; // steps from one patch to the next where a map is smooth
const SIGNED = 768; // where the colours of signed maps start, after 256 of three bytes

/** @type {Overlay} */
export const heat = {
  title: "Heat",

  // The part that was seen paler the more opaque the map, the rest grey and dim.
  under({ colour, grey }, [left, top, right, bottom], opacity) {
    const canvas = new OffscreenCanvas(colour.width, colour.height);
    const context = /** @type {OffscreenCanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.fillStyle = "rgb(33, 33, 33)";
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.globalAlpha = 0.4;
    context.drawImage(grey, 0, 0);
    context.beginPath();
    context.rect(left, top, right - left, bottom - top);
    context.clip();
    context.globalAlpha = 1;
    context.drawImage(colour, 0, 0);
    context.globalAlpha = opacity;
    context.drawImage(grey, 0, 0);
    return canvas;
  },

  over(context, [left, top, right, bottom], { values, grid, scale, look, opacity }) {
    context.save();
    context.globalAlpha = opacity;
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
 * @param {Look} look
 */
export function heatTile(values, [rows, columns], [low, high], { colours, signed, smooth }) {
  const fine = smooth ? FINE : 1;
  const width = columns * fine;
  const height = rows * fine;
  const pixels = new ImageData(width, height);
  const data = pixels.data;
  const table = signed ? SIGNED : 0;
  const times = high > low ? 256 / (high - low) : 0;
  const flat = signed ? 128 : 0;
  const across = places(columns, fine);
  const down = places(rows, fine);
  for (let y = 0, to = 0; y < height; y++) {
    const [above, below, share] = down[y];
    for (let x = 0; x < width; x++, to += 4) {
      const [left, right, part] = across[x];
      let value = values[above * columns + left];
      if (smooth) {
        const top = value * (1 - part) + values[above * columns + right] * part;
        const bottom = values[below * columns + left] * (1 - part) + values[below * columns + right] * part;
        value = top * (1 - share) + bottom * share;
      }
      const step = times ? Math.min(255, Math.max(0, Math.floor((value - low) * times))) : flat;
      data[to] = colours[table + step * 3];
      data[to + 1] = colours[table + step * 3 + 1];
      data[to + 2] = colours[table + step * 3 + 2];
      data[to + 3] = 255;
    }
  }
  const canvas = new OffscreenCanvas(width, height);
  canvas.getContext("2d")?.putImageData(pixels, 0, 0);
  return canvas;
}

/**
 * For each fine step the two cells that it lies between, and how far it is from the first.
 * @param {number} cells
 * @param {number} fine
 */
export function places(cells, fine) {
  return Array.from({ length: cells * fine }, (_, step) => {
    const middle = Math.min(cells - 1, Math.max(0, (step + 0.5) / fine - 0.5));
    const first = Math.floor(middle);
    return [first, Math.min(cells - 1, first + 1), middle - first];
  });
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
