// How the map is drawn.

import { check, choices } from "../dom.js";
import { OVERLAYS } from "../draw/overlays.js";
import { choose } from "../view.js";

/** @import { State } from "../data/shown.js" */

const SCALES = [
  { value: "own", text: "this map" },
  { value: "shared", text: "shared" },
];

/** @type {import("../dom.js").Panel} */
export const settings = {
  markup: `
    <fieldset class="view" data-part="settings">
      <legend>View</legend>
      <label class="line">Opacity <input type="range" data-view="opacity" min="0" max="100" step="1"></label>
      <label class="line"><input type="checkbox" data-view="grid"> Grid lines</label>
      <label class="line"><input type="checkbox" data-view="smooth"> Smooth</label>
      <label class="line"><input type="checkbox" data-view="mark"> Mark outlier patches</label>
      <label class="line"><input type="checkbox" data-view="leaveOut"> Leave them out</label>
      <fieldset class="choices" data-part="overlay"><legend>Overlay</legend></fieldset>
      <fieldset class="choices" data-part="scale"><legend>Colour scale</legend></fieldset>
    </fieldset>`,

  style: `
    .view { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 18px; margin-top: 16px; font-size: 14px; }
    .view > legend { float: left; padding: 0; font-weight: 600; line-height: 24px; }
    .line { display: flex; align-items: center; gap: 8px; min-height: 24px; }
    .line input[type="checkbox"] { width: 18px; height: 18px; margin: 0; accent-color: var(--accent); }
    .line input[type="range"] { flex: 1; min-width: 0; accent-color: var(--accent); }
    @container (max-width: 760px) {
      .view { order: 4; margin-top: 0; }
      .line { min-height: 36px; }
    }`,

  start(context) {
    const { part, store, show } = context;
    const overlays = Object.entries(OVERLAYS).map(([value, { title }]) => ({ value, text: title }));
    part("overlay").append(...choices(context, "overlay", overlays));
    part("overlay").hidden = overlays.length < 2;
    part("scale").append(...choices(context, "scale", SCALES));
    /** @type {HTMLInputElement[]} */
    const inputs = [...part("settings").querySelectorAll("[data-view]")];
    for (const input of inputs) {
      const name = /** @type {keyof State} */ (input.dataset.view);
      const isCheck = input.type === "checkbox";
      input.addEventListener("input", () => choose(store, { [name]: isCheck ? input.checked : Number(input.value) }));
      show((state) => {
        if (isCheck) input.checked = !!state[name];
        else input.value = String(state[name]);
      });
    }
    show((state) => {
      check(part("overlay"), state.overlay);
      check(part("scale"), state.scale);
    });
  },
};
