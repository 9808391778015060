// The colours of the map, and the values at their ends.

import { ends, maps, scaleOf, values } from "../data/shown.js";
import { coloursOf } from "../draw/figure.js";
import { colourBar } from "../draw/heat.js";

/** @type {import("../dom.js").Panel} */
export const scale = {
  markup: `
    <div class="scale" data-part="scale">
      <span data-part="low"></span><canvas data-part="colours" width="256" height="1" aria-hidden="true"></canvas><span data-part="high"></span>
    </div>`,

  style: `
    .scale { display: flex; align-items: center; gap: 8px; margin-top: 8px; font-size: 13px; font-variant-numeric: tabular-nums; }
    .scale canvas { flex: 1; height: 12px; min-width: 0; border-radius: 3px; image-rendering: pixelated; }
    .scale span { min-width: 8ch; }
    .scale span:first-child { text-align: right; }`,

  start({ part, show }) {
    show((state) => {
      const shown = values(state);
      part("scale").hidden = !shown;
      if (!shown) return;
      part("colours")
        .getContext("2d")
        .putImageData(colourBar(coloursOf(state), maps(state)?.signed), 0, 0);
      [part("low").textContent, part("high").textContent] = ends(state, scaleOf(state, shown));
    });
  },
};
