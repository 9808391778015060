// How the map is drawn, which map, and whose look: a small window.

import { method, pinned } from "../data/shown.js";
import { check, choices, opens } from "../dom.js";
import { choose } from "../view.js";

/** @import { State } from "../data/shown.js" */

const SCALES = [
  { value: "own", text: "this map" },
  { value: "shared", text: "all maps" },
];
const DIRECTIONS = [
  { value: "looks_at", text: "looks at" },
  { value: "looked_at_by", text: "is looked at by" },
];

/** @type {import("../dom.js").Panel} */
export const view = {
  markup: `
    <button type="button" class="more" data-part="more" aria-label="Map and view" title="Map and view"><svg viewBox="0 0 20 20" width="20" height="20" aria-hidden="true"><path d="M3 6h8m4 0h2M3 14h2m4 0h8" stroke="currentColor" stroke-width="2" stroke-linecap="round"/><circle cx="13" cy="6" r="2.2" fill="none" stroke="currentColor" stroke-width="1.8"/><circle cx="7" cy="14" r="2.2" fill="none" stroke="currentColor" stroke-width="1.8"/></svg></button>
    <div class="view" popover data-part="view" role="dialog" aria-label="Map and view">
      <fieldset class="choices" data-part="methods"><legend>Map</legend></fieldset>
      <p class="quiet"><span data-part="note"></span> <button type="button" class="term" data-part="what">What is it?</button></p>
      <fieldset class="choices" data-part="direction"><legend data-part="who"></legend></fieldset>
      <fieldset class="choices" data-part="scaling"><legend>Scale of</legend></fieldset>
      <label class="line">Opacity of heat <input type="range" data-view="opacity" min="0" max="100" step="1"></label>
      <label class="line"><input type="checkbox" data-view="whole"> Whole photo, with what the model did not see</label>
      <label class="line"><input type="checkbox" data-view="smooth"> Smooth: interpolated between patches</label>
      <label class="line"><input type="checkbox" data-view="grid"> Lines between patches</label>
      <label class="line" data-part="sinks-line"><input type="checkbox" data-view="leaveOut"> Leave sinks out</label>
    </div>`,

  style: `
    .more { width: 34px; height: 30px; display: grid; place-items: center; border: 1px solid var(--line); border-radius: 9px; }
    .more:hover, .more[aria-expanded="true"] { border-color: var(--accent); background: var(--chosen); }
    .view:popover-open { display: grid; gap: 12px; }
    .line { display: flex; align-items: center; gap: 8px; min-height: 26px; }
    .line input[type="checkbox"] { width: 18px; height: 18px; flex: none; accent-color: var(--accent); }
    .line input[type="range"] { flex: 1; min-width: 0; accent-color: var(--accent); }
    @container explorer (max-width: 639px) { .line { min-height: 40px; } .more { width: 44px; height: 40px; margin-right: var(--gap); } }`,

  start(context) {
    const { part, store, show } = context;
    opens(part("more"), part("view"));
    part("scaling").append(...choices(context, "scale", SCALES));
    part("direction").append(...choices(context, "direction", DIRECTIONS));
    /** @type {HTMLInputElement[]} */
    const inputs = [...part("view").querySelectorAll("[data-view]")];
    for (const input of inputs) {
      const name = /** @type {keyof State} */ (input.dataset.view);
      const isCheck = input.type === "checkbox";
      input.addEventListener("input", () => choose(store, { [name]: isCheck ? input.checked : Number(input.value) }));
      show((state) => {
        if (isCheck) input.checked = !!state[name];
        else input.value = String(state[name]);
      });
    }
    show(({ explanation }) => {
      const options = explanation.methods.map(({ name, title, paper }) => ({ value: name, text: title, title: paper }));
      part("methods").replaceChildren(part("methods").firstElementChild, ...choices(context, "map", options));
      part("sinks-line").hidden = !explanation.sinks;
    });
    show((state) => {
      check(part("methods"), state.map);
      check(part("scaling"), state.scale);
      check(part("direction"), state.direction);
      part("direction").disabled = !method(state).of_token;
      part("who").textContent = pinned(state) === null ? "The class token" : "The patch";
      const { note, term } = method(state);
      part("note").textContent = note;
      part("what").hidden = !term;
      part("what").dataset.term = term;
    });
  },
};
