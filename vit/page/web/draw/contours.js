// Lines around a quarter, a half and three quarters of the look; in colour within the last.

import { between, contour, FINE, levels } from "../data/look.js";
import { contextOf } from "./photo.js";

/** @import { Overlay } from "./overlays.js" */

const LINES = ["rgba(255, 255, 255, 0.95)", "rgba(255, 255, 255, 0.8)", "rgba(255, 255, 255, 0.6)"];

/** @type {Overlay} */
export const contours = {
  title: "Contours",
  about: "Lines around 25, 50 and 75 % of the look.",

  draw(context, { colour, dim, pale }, [left, top, right, bottom], { values, grid, look: { dark } }) {
    const [height, width] = grid.map((count) => count * FINE);
    const fine = between(values, grid);
    const [across, down] = [(right - left) / width, (bottom - top) / height];
    const found = levels(values);

    context.drawImage(dark ? dim : pale, 0, 0);
    const pixels = new ImageData(width, height);
    for (const [at, value] of fine.entries()) pixels.data[at * 4 + 3] = value >= found[found.length - 1] ? 255 : 0;
    const mask = new OffscreenCanvas(width, height);
    contextOf(mask).putImageData(pixels, 0, 0);
    const inside = new OffscreenCanvas(colour.width, colour.height);
    const over = contextOf(inside);
    over.drawImage(mask, left, top, right - left, bottom - top);
    over.globalCompositeOperation = "source-in";
    over.drawImage(colour, 0, 0);
    context.drawImage(inside, 0, 0);

    for (const [number, level] of found.entries()) {
      context.beginPath();
      for (const [fromX, fromY, toX, toY] of contour(fine, width, level)) {
        context.moveTo(left + fromX * across, top + fromY * down);
        context.lineTo(left + toX * across, top + toY * down);
      }
      for (const [style, wide] of /** @type {[string, number][]} */ ([
        ["rgba(0, 0, 0, 0.6)", 3],
        [LINES[number], 1.5],
      ])) {
        context.strokeStyle = style;
        context.lineWidth = (wide * colour.width) / 600;
        context.stroke();
      }
    }
  },
};
