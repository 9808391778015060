// The photo in colour where it is read, dim and grey elsewhere; pale instead of dim in light mode.

import { between, FINE, lightness } from "../data/look.js";
import { contextOf } from "./photo.js";

/** @import { Layer, Overlay } from "./overlays.js" */

/** @type {Overlay} */
export const spotlight = {
  title: "Spotlight",
  about: "Lit is what is read.",

  draw(context, { colour, dim, pale }, [left, top, right, bottom], layer) {
    const { dark, smooth, strength = 1 } = layer.look;
    context.drawImage(dark ? dim : pale, 0, 0);
    const lit = new OffscreenCanvas(colour.width, colour.height);
    const over = contextOf(lit);
    over.imageSmoothingEnabled = smooth;
    over.imageSmoothingQuality = "low";
    over.drawImage(mask(layer), left, top, right - left, bottom - top);
    over.globalCompositeOperation = "source-in";
    over.drawImage(colour, 0, 0);
    context.drawImage(lit, 0, 0);
    if (strength === 1) return;
    context.save();
    context.globalAlpha = 1 - strength;
    context.drawImage(colour, 0, 0);
    context.restore();
  },
};

/** As opaque as each place is light. */
function mask(/** @type {Layer} */ { values, grid, light, look: { smooth } }) {
  const fine = smooth ? FINE : 1;
  const [height, width] = grid.map((count) => count * fine);
  const pixels = new ImageData(width, height);
  const [shown, { data }] = [between(values, grid, fine), pixels];
  for (let at = 0; at < shown.length; at++) data[at * 4 + 3] = Math.round(255 * lightness(shown[at], light));
  const canvas = new OffscreenCanvas(width, height);
  contextOf(canvas).putImageData(pixels, 0, 0);
  return canvas;
}
