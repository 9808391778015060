// What the classifier would say if the layer were the last.

import { percent } from "../data/words.js";
import { make } from "../dom.js";

/** @type {import("../dom.js").Panel} */
export const lens = {
  markup: `
    <div class="lens" data-part="lens">
      <p class="note" data-part="lens-title"></p>
      <ol data-part="lens-list"></ol>
    </div>`,

  style: `
    .lens { margin-top: 6px; }
    .lens li {
      display: flex; justify-content: space-between; gap: 8px; padding: 3px 8px; font-size: 14px; border-radius: 6px; text-align: left;
      background: linear-gradient(to right, var(--bar) calc(var(--share) * 100%), transparent 0);
    }
    @media (forced-colors: active) { .lens li { forced-color-adjust: none; } }`,

  start({ part, show }) {
    show(({ explanation: { decided, layers }, layer }) => {
      part("lens").hidden = !decided.length;
      part("lens-title").textContent =
        layer === layers - 1
          ? "After this layer, the last, the classifier says:"
          : `If layer ${layer} were the last, the classifier would say:`;
      const rows = (decided[layer] ?? []).map(([label, probability]) => {
        const row = make("li");
        row.style.setProperty("--share", probability);
        row.append(make("span", { textContent: label }), make("span", { textContent: percent(probability) }));
        return row;
      });
      part("lens-list").replaceChildren(...rows);
    });
  },
};
