// Whose look the attention is, and which way.

import { method, pinned } from "../data/shown.js";
import { capital, patchName } from "../data/words.js";
import { check, choices } from "../dom.js";
import { choose, goBack, lookOfFirst } from "../view.js";

/** @import { Explained } from "../data/shown.js" */

const DIRECTIONS = [
  { value: "looks_at", text: "looks at" },
  { value: "looked_at_by", text: "is looked at by" },
];

/** @type {import("../dom.js").Panel} */
export const query = {
  markup: `
    <div class="query">
      <h3>Who looks?</h3>
      <div class="chips">
        <button type="button" data-part="class-token" aria-pressed="true" title="A token of its own, before the patches, that the classifier reads">Class token</button>
        <button type="button" data-part="pinned" aria-pressed="true" hidden></button>
      </div>
      <fieldset class="choices" data-part="direction"><legend>Direction</legend></fieldset>
    </div>`,

  style: `
    .chips { display: flex; flex-wrap: wrap; gap: 6px; margin-bottom: 8px; }
    @container (max-width: 760px) { .query { order: 3; } }`,

  start(context) {
    const { part, store, show } = context;
    part("direction").append(...choices(context, "direction", DIRECTIONS));
    show((state) => {
      const { explanation, direction } = state;
      const patch = pinned(state);
      const { of_token } = method(state);
      check(part("direction"), direction);
      part("direction").disabled = !of_token;
      part("class-token").hidden = !explanation.hasClassToken;
      part("class-token").setAttribute("aria-pressed", of_token && patch === null);
      if (patch === null && document.activeElement === part("pinned")) part("class-token").focus(); // it is about to go
      part("pinned").hidden = patch === null;
      if (patch !== null) part("pinned").textContent = `${capital(patchName(patch, explanation.grid))} ×`;
    });
    part("class-token").addEventListener("click", () => {
      const { explanation } = /** @type {Explained} */ (store.get());
      choose(store, lookOfFirst(explanation));
    });
    part("pinned").addEventListener("click", () => goBack(store));
  },
};
