// Which overlay, and the scale of the one that measures.

import { ends, maps, overlay, scaleOf, values } from "../data/shown.js";
import { check, choices } from "../dom.js";
import { colourBar } from "../draw/heat.js";
import { OVERLAYS } from "../draw/overlays.js";
import { coloursOf } from "../draw/picture.js";

/** @type {import("../dom.js").Panel} */
export const overlays = {
  markup: `
    <div class="scale" data-part="scale">
      <span data-part="low"></span><canvas data-part="colours" width="256" height="1" aria-hidden="true"></canvas><span data-part="high"></span>
    </div>
    <fieldset class="overlays" data-part="overlay" aria-label="Overlay"></fieldset>`,

  style: `
    .overlays { display: flex; padding: 2px; border: 1px solid var(--line); border-radius: 9px; font-size: 0.82em; }
    .overlays label { position: relative; cursor: pointer; }
    .overlays input { position: absolute; inset: 0; opacity: 0; width: 100%; height: 100%; margin: 0; cursor: pointer; }
    .overlays span { display: block; padding: 0.2em 0.6em; border-radius: 7px; }
    .scale span { color: white; font-size: 0.8em; } /* not of the whole: --side counts in em */
    .overlays label:hover span { background: var(--card); }
    .overlays input:checked + span { background: var(--chosen); }
    .overlays input:focus-visible + span { outline: 3px solid var(--accent); }
    .scale { position: absolute; left: 10px; right: 10px; top: calc(var(--side) - 2.5em); z-index: 1; display: flex; align-items: center; gap: 8px; padding: 4px 10px; border-radius: 8px; background: rgba(10, 12, 16, 0.82); font-variant-numeric: tabular-nums; pointer-events: none; }
    .scale canvas { flex: 1; height: 10px; min-width: 0; border-radius: 3px; image-rendering: pixelated; }
    @media (max-height: 820px) { .overlays span { padding-inline: 0.4em; } }
    @container explorer (max-width: 639px) { .overlays { margin-left: var(--gap); justify-self: start; } .overlays span { padding: 0.75em 0.75em; } }
    @media (forced-colors: active) { .overlays input:checked + span { outline: 3px solid Highlight; } }`,

  start(context) {
    const { part, show } = context;
    const options = Object.entries(OVERLAYS).map(([value, { title, about }]) => ({ value, text: title, title: about }));
    part("overlay").append(...choices(context, "overlay", options));
    show((state) => {
      check(part("overlay"), overlay(state));
      part("overlay").disabled = !!maps(state)?.signed;
    });
    show((state) => {
      const shown = values(state);
      part("scale").hidden = !shown || overlay(state) !== "heat";
      if (!shown) return;
      const bar = colourBar(coloursOf(state), maps(state)?.signed);
      part("colours").getContext("2d").putImageData(bar, 0, 0);
      [part("low").textContent, part("high").textContent] = ends(state, scaleOf(state, shown));
    });
  },
};
