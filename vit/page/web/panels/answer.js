// What the model predicts; a class shows its map, and a second one the difference.

import { byClass, classMethod } from "../data/shown.js";
import { percent } from "../data/words.js";
import { make } from "../dom.js";
import { choose } from "../view.js";

/** @import { Explained } from "../data/shown.js" */

/** @type {import("../dom.js").Panel} */
export const answer = {
  markup: `
    <div data-part="predictions">
      <h3>Predictions of <span data-part="model"></span></h3>
      <p class="note" data-part="unfamiliar" hidden>This photo is like nothing it was trained on: these are guesses.</p>
      <ul class="classes" data-part="classes"></ul>
      <p class="note" data-part="classes-note">Click a class for its relevance; shift-click a second one, or its −, for the difference.</p>
    </div>
    <p class="note" data-part="no-classes" hidden>This model was trained without classes: it predicts nothing, but you can see where it looks.</p>`,

  style: `
    .classes li { display: flex; gap: 4px; }
    .class {
      display: flex; justify-content: space-between; gap: 8px; font-size: 14px; border-radius: 6px; text-align: left;
      background: linear-gradient(to right, var(--bar) calc(var(--share) * 100%), transparent 0);
      flex: 1; min-width: 0; padding: 6px 8px; border: 1px solid var(--border-color-primary); color: var(--body-text-color); cursor: pointer;
    }
    button[aria-pressed="true"].class { border-color: var(--accent); box-shadow: inset 0 0 0 2px var(--accent); }
    .class span:first-child { overflow-wrap: anywhere; }
    .class span:last-child { white-space: nowrap; font-variant-numeric: tabular-nums; }
    .less { width: 32px; flex: none; padding: 0; text-align: center; border: 1px solid var(--border-color-primary); border-radius: 6px; background: var(--background-fill-primary); color: var(--body-text-color); }
    .less[aria-pressed="true"] { background: var(--chosen); border-color: var(--accent); box-shadow: inset 0 0 0 2px var(--accent); }
    .less:disabled { visibility: hidden; }
    @container (max-width: 760px) { [data-part="predictions"], [data-part="no-classes"] { order: -1; } }
    @media (forced-colors: active) { .class { forced-color-adjust: none; } }`,

  start({ part, store, show }) {
    const pick = (/** @type {number} */ rank, /** @type {boolean} */ second) => {
      const state = /** @type {Explained} */ (store.get());
      const map = classMethod(state)?.name;
      if (!second || rank === state.chosen) return choose(store, { map, chosen: rank });
      const same = byClass(state) && state.against === rank;
      choose(store, { map, against: same ? null : rank });
    };
    show(({ explanation: { model, predictions, unfamiliar } }) => {
      part("unfamiliar").hidden = !unfamiliar;
      part("model").textContent = model.split("/").at(-1);
      part("predictions").hidden = !predictions.length;
      part("no-classes").hidden = predictions.length > 0;
      const rows = predictions.map(({ label, probability }, rank) => {
        const bar = make(
          "button",
          {
            type: "button",
            className: "class",
            onclick: (/** @type {MouseEvent} */ event) => pick(rank, event.shiftKey),
          },
          { rank },
        );
        bar.style.setProperty("--share", probability);
        bar.append(make("span", { textContent: label }), make("span", { textContent: percent(probability) }));
        const title = `The difference to ${label}`;
        const less = make(
          "button",
          {
            type: "button",
            className: "less",
            textContent: "−",
            title,
            ariaLabel: title,
            onclick: () => pick(rank, true),
          },
          { rank },
        );
        const row = make("li");
        row.append(bar, less);
        return row;
      });
      part("classes").replaceChildren(...rows);
    });
    show((state) => {
      const [chosen, against] = byClass(state) ? [state.chosen, state.against] : [null, null];
      for (const button of part("classes").querySelectorAll("button")) {
        const rank = Number(button.dataset.rank);
        const isLess = button.className === "less";
        button.setAttribute("aria-pressed", rank === (isLess ? against : chosen));
        if (isLess) button.disabled = rank === state.chosen;
      }
    });
  },
};
