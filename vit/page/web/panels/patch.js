// The patch that is pointed at, or pinned: enlarged, with its value.

import { patch as patchOf, patchText } from "../data/shown.js";
import { boxOn, patchBox } from "../draw/photo.js";

const SIDE = 112;

/** @type {import("../dom.js").Panel} */
export const patch = {
  markup: `
    <div class="patch">
      <canvas data-part="patch" width="112" height="112" aria-hidden="true" hidden></canvas>
      <p data-part="patch-text"></p>
    </div>`,

  style: `
    .patch { display: flex; gap: 12px; align-items: center; min-height: 112px; font-size: 14px; }
    .patch canvas { width: 96px; height: 96px; flex: none; border-radius: 6px; border: 1px solid var(--border-color-primary); }
    @container (max-width: 760px) { .patch { order: 2; min-height: 96px; } }`,

  start({ part, show }) {
    show((state) => {
      const asked = patchOf(state);
      part("patch-text").textContent = patchText(state);
      part("patch").hidden = asked === null;
      if (asked === null) return;
      const { box, grid, picture, size } = state.explanation;
      const [x, y, width, height] = patchBox(asked, boxOn(box, size, picture.width, picture.height), grid);
      const context = part("patch").getContext("2d");
      context.clearRect(0, 0, SIDE, SIDE);
      context.drawImage(picture, x, y, width, height, 0, 0, SIDE, SIDE);
    });
  },
};
