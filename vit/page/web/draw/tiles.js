// Each patch drawn as large as its share: its area is to its place as its value to the highest.

import { patchBox } from "./photo.js";

/** @import { Overlay } from "./overlays.js" */

/** @type {Overlay} */
export const tiles = {
  title: "Tiles",
  about: "A patch is as large as its share.",

  draw(context, { colour, dim, pale }, box, { values, grid, look: { dark } }) {
    const highest = values.reduce((one, other) => Math.max(one, other), 0);
    context.drawImage(dark ? dim : pale, 0, 0);
    for (const [patch, value] of values.entries()) {
      const [x, y, width, height] = patchBox(patch, box, grid);
      const side = tileSide(value, highest);
      const [across, down] = [width * side, height * side];
      if (across < 1 || down < 1) continue;
      const [left, top] = [x + (width - across) / 2, y + (height - down) / 2];
      context.drawImage(colour, left, top, across, down, left, top, across, down);
    }
  },
};

/** The side of a tile, as a share of its patch's. */
export const tileSide = (/** @type {number} */ value, /** @type {number} */ highest) =>
  highest > 0 ? Math.sqrt(Math.max(0, value) / highest) : 0;
