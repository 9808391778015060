// What to know before believing the picture: sinks, and what is not in it.

import { column, layer, maps, method, pinned } from "../data/shown.js";
import { percent } from "../data/words.js";
import { make } from "../dom.js";
import { load } from "../loading.js";
import { choose } from "../view.js";

/** @import { Explained } from "../data/shown.js" */

const REGISTERS = "#registers"; // after a model's source, as models.py has it

/** @type {import("../dom.js").Panel} */
export const caveat = {
  markup: `
    <div class="card caveat" data-part="sinks" hidden>
      <p><span data-part="sinks-text"></span> <button type="button" class="term" data-term="sink">Why?</button></p>
      <p class="ways"><button type="button" class="link" data-part="show-sinks"></button> <button type="button" class="link" data-part="give-registers">Give it registers</button></p>
    </div>
    <div class="card caveat" data-part="given" hidden>
      <p>Registers now do the work of the sinks.</p>
      <p><button type="button" class="link" data-part="take-back">Without them</button></p>
    </div>
    <p class="quiet elsewhere" data-part="elsewhere"></p>`,

  style: `
    .caveat { display: grid; gap: 4px; }
    .caveat .ways { display: flex; flex-wrap: wrap; gap: 4px 16px; }
    .elsewhere { font-size: 0.85em; }`,

  start(context) {
    const { part, store, show } = context;
    show((state) => {
      const { explanation, leaveOut } = state;
      const flagged = [...explanation.outliers(layer(state))];
      const count = flagged.filter(Boolean).length;
      part("sinks").hidden = !count;
      const patches = count === 1 ? "1 patch holds" : `${count} patches hold`;
      const isShown = leaveOut ? "hatched and left out" : "shown";
      part("sinks-text").textContent =
        `${patches} the model’s notes and no picture${taken(state, flagged)}: ${isShown}.`;
      part("show-sinks").textContent = leaveOut ? "Show them" : "Leave them out";
      part("give-registers").hidden = !explanation.canHaveRegisters;
    });
    show(({ explanation }) => {
      part("given").hidden = !explanation.model.endsWith(REGISTERS);
    });
    show((state) => {
      const [before, after] = elsewhere(state).split("registers");
      const term = make(
        "button",
        { type: "button", className: "term", textContent: "registers" },
        { term: "register" },
      );
      part("elsewhere").replaceChildren(before, ...(after ? [term, after] : []));
    });
    part("show-sinks").addEventListener("click", () => choose(store, { leaveOut: !store.get().leaveOut }));
    part("give-registers").addEventListener("click", () => {
      const { explanation } = /** @type {Explained} */ (store.get());
      load(context, "choose_model", { model: explanation.model, registers: true });
    });
    part("take-back").addEventListener("click", () => {
      const { explanation } = /** @type {Explained} */ (store.get());
      load(context, "choose_model", { model: explanation.model.slice(0, -REGISTERS.length) });
    });
  },
};

/**
 * The share of the look that goes to them.
 * @param {Explained} state
 * @param {number[]} flagged
 */
function taken(state, flagged) {
  const shown = maps({ ...state, leaveOut: false })?.layers[layer(state)]?.[column(state)];
  if (!shown || method(state).unit !== "share") return "";
  return `, ${percent(shown.reduce((sum, value, patch) => sum + (flagged[patch] ? value : 0), 0))} of the look`;
}

/** How much of a look goes to, or comes from, what is no patch. */
function elsewhere(/** @type {Explained} */ state) {
  const shares = maps(state)?.elsewhere?.[state.layer][column(state)];
  const { explanation, direction } = state;
  if (!shares?.length) return "";
  const itself = pinned(state) === null ? shares[0] : 0;
  const others = shares.reduce((sum, share) => sum + share, 0) - itself;
  const registers = explanation.prefix.some((name) => name.startsWith("register"));
  const parts = [
    ...(itself ? [`${percent(itself)} to itself`] : []),
    ...(others > 1e-6 ? [`${percent(others)} to ${registers ? "registers" : "other tokens"}`] : []),
  ];
  if (direction !== "looks_at" || !parts.length) return "";
  return `Not shown: ${parts.join(", ")}.`;
}
