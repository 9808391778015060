// Questions to ask next: each shows another map, or the mode that answers it.

import { byClass, classMethod, method, pinned } from "../data/shown.js";
import { plain } from "../data/words.js";
import { make } from "../dom.js";
import { choose, lookOfFirst } from "../view.js";

/** @import { Explained } from "../data/shown.js" */

/** @type {import("../dom.js").Panel} */
export const asks = {
  markup: `<ul class="asks" data-part="asks"></ul>`,
  style: `
    .asks { display: grid; gap: 7px; }
    .asks button { width: 100%; padding: 0.45em 0.8em; border: 1px solid var(--line); border-radius: 10px; text-align: left; }
    .asks button:hover { border-color: var(--mark); }
    .asks button::before { content: "→"; margin-right: 0.6em; color: var(--mark-text); font-weight: 700; }
    @container explorer (max-width: 639px) { .asks { grid-auto-flow: column; grid-auto-columns: max-content; overflow-x: auto; margin: 0 calc(-1 * var(--gap)); padding: 3px var(--gap); } .asks button { padding: 0.7em 0.9em; } }`,

  start({ part, store, show }) {
    show((state) => {
      part("asks").replaceChildren(
        ...questions(state).map(([text, changes]) => {
          const row = make("li");
          row.append(make("button", { type: "button", textContent: text, onclick: () => choose(store, changes) }));
          return row;
        }),
      );
    });
  },
};

/**
 * What is not shown yet.
 * @param {Explained} state
 * @returns {[string, Partial<Explained>][]}
 */
function questions(state) {
  const { explanation, chosen, against } = state;
  const [first, second] = explanation.predictions;
  const { name, of_token } = method(state);
  const relevance = classMethod(state)?.name;
  const answered = { layer: explanation.layers - 1 }; // the question is about what it said in the end
  /** @type {[string, Partial<Explained>][]} */
  const found = [];
  if (!of_token || pinned(state) !== null)
    found.push([
      explanation.hasClassToken ? "Where does it look?" : "Where does the middle look?",
      lookOfFirst(explanation),
    ]);
  if (relevance && first && !(byClass(state) && chosen === 0 && against === null))
    found.push([`What speaks for ${plain(first.label)}?`, { map: relevance, chosen: 0, ...answered }]);
  if (relevance && second && against === null)
    found.push([`Why not ${plain(second.label)}?`, { map: relevance, chosen: 0, against: 1, ...answered }]);
  if (first) found.push(["Paint over a part", { mode: "what-if" }]);
  if (name !== "rollout" && explanation.methods.some((method) => method.name === "rollout"))
    found.push(["And through all layers?", { map: "rollout", ...answered }]);
  return found.slice(0, 3);
}
