// What visitors take away: pictures, arrays, and a link.

import { byClass, layer, ofWholeModel, pinned } from "../data/shown.js";
import { saveAs } from "../dom.js";
import { figureName, sheetFigure, viewFigure } from "../draw/figure.js";
import { words } from "../view.js";

/** @import { Explained } from "../data/shown.js" */

/** @type {import("../dom.js").Panel} */
export const exporting = {
  markup: `
    <div class="away">
      <h3>Take away</h3>
      <button type="button" data-part="save-view">View (PNG)</button>
      <button type="button" data-part="save-sheet">All layers (PNG)</button>
      <button type="button" data-part="save-arrays">Arrays (.npz)</button>
      <button type="button" data-part="copy-link">Link</button>
      <label class="link" data-part="link-line" hidden><span data-part="link-text"></span> <input type="text" readonly data-part="link"></label>
    </div>`,

  style: `
    .away { display: flex; flex-wrap: wrap; align-items: center; gap: 8px; margin-top: 20px; }
    .away h3 { margin: 0 6px 0 0; }
    .link { flex-basis: 100%; display: flex; flex-wrap: wrap; gap: 8px; align-items: center; font-size: 14px; }
    .link input { flex: 1; min-width: 16ch; padding: 6px 8px; border: 1px solid var(--border-color-primary); border-radius: 6px; background: var(--background-fill-primary); color: var(--body-text-color); font: 13px var(--font-mono); }`,

  start({ part, store, show, ask: { ask } }) {
    const state = () => /** @type {Explained} */ (store.get());

    part("save-view").addEventListener("click", () => {
      const what = ofWholeModel(state()) ? "" : `layer-${layer(state())}`;
      savePicture(viewFigure(state()), figureName(state(), what));
    });
    part("save-sheet").addEventListener("click", () => {
      savePicture(sheetFigure(state()), figureName(state(), "all-layers"));
    });

    part("save-arrays").addEventListener("click", async () => {
      const { explanation, saving, wanted, chosen, against, head } = state();
      if (saving || wanted !== explanation.url) return;
      store.set({ saving: true });
      const index = (/** @type {number | null} */ rank) =>
        rank === null ? null : (explanation.predictions[rank]?.index ?? null);
      const files = await ask("save_arrays", {
        label: index(chosen),
        against: byClass(state()) ? index(against) : null,
        heads: head,
        patch: pinned(state()),
      });
      store.set({ saving: false });
      for (const { url, orig_name } of files) saveAs(url, orig_name);
    });
    show(({ saving }) => part("save-arrays").setAttribute("aria-disabled", saving));

    part("copy-link").addEventListener("click", async () => {
      const field = part("link");
      part("link-line").hidden = false;
      field.value = `${location.origin}${location.pathname}?${words(state())}`;
      field.select();
      const kept = state().explanation.example
        ? ""
        : " Your own photo is not in it: whoever opens it chooses one first.";
      const copied = await navigator.clipboard.writeText(field.value).then(
        () => "Copied.",
        () => "Copy this link.",
      );
      part("link-text").textContent = copied + kept;
      store.set({ said: copied + kept });
    });
    show(({ explanation }) => {
      part("link-line").hidden = !!explanation; // the link was another photo's
    });
  },
};

/**
 * @param {OffscreenCanvas | null} drawn
 * @param {string} name
 */
async function savePicture(drawn, name) {
  if (!drawn) return;
  const url = URL.createObjectURL(await drawn.convertToBlob({ type: "image/png" }));
  saveAs(url, name);
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
