// The layers of "What if", as they are now: below those of the photo as it was.

import { capital, layerName, percent, plain } from "../data/words.js";
import { make } from "../dom.js";
import { contextOf } from "../draw/photo.js";
import { small, thumbnail } from "../draw/picture.js";
import { after, look, shownAs } from "./what-if-shown.js";

/** @import { Panel } from "../dom.js" */

/** @type {Panel} */
export const strip = {
  markup: `<p class="quiet what-if-now" data-part="strip-title">Now:</p><div class="what-if-strip" data-part="what-if-strip"></div>`,
  style: `
    .what-if-now { font-size: 0.8em; margin-top: 6px; }
    .what-if-strip { contain: inline-size; display: grid; grid-auto-flow: column; grid-auto-columns: minmax(0, 1fr); margin-left: 52px; }
    .what-if-strip figure { margin: 0; min-width: 0; font-size: 0.66em; text-align: center; }
    .what-if-strip canvas { width: calc(100% - 4px); margin: 0 2px; display: block; border-radius: 6px; background: var(--card); }
    .what-if-strip figcaption { overflow: hidden; text-overflow: ellipsis; line-height: 1.15; max-height: 2.4em; color: var(--quiet); }
    @container explorer (min-width: 1100px) { &:not([data-presenting]) .what-if-strip { margin-left: 0; } } /* as the layers above */
    @container explorer (max-width: 639px) { .what-if-strip { margin-left: 0; } .what-if-strip figcaption { display: none; } .what-if-strip, .what-if-now { order: 2; } }`,

  start({ part, show }) {
    show((state) => {
      const explanation = after(state);
      const ready = small(explanation, 112);
      const isAttention = state.map === explanation.methods[0].name; // else the strip above shows another map
      part("strip-title").textContent = isAttention ? "Now:" : "Now, what the class token looks at:";
      part("what-if-strip").replaceChildren(
        ...Array.from({ length: explanation.layers }, (_, layer) => {
          const cell = make("figure", {}, { layer });
          const values = look(state, explanation, layer);
          const canvas = make("canvas", { width: ready.width, height: ready.height, ariaHidden: "true" });
          if (values) canvas.getContext("2d").drawImage(thumbnail(ready, shownAs(state, explanation), values), 0, 0);
          else canvas.getContext("2d").drawImage(contextOf(ready.photos.colour).canvas, 0, 0);
          const [label, share] = explanation.decided[layer]?.[0] ?? ["", 0];
          cell.title = label && `${capital(layerName(layer))}: ${plain(label)}, ${percent(share)}`;
          cell.append(canvas, make("figcaption", { textContent: plain(label) }));
          return cell;
        }),
      );
    });
  },
};
