// The paper's pipeline with the sizes of this model, and where in it the map is from.

import { method } from "../data/shown.js";
import { make } from "../dom.js";

/** @import { Explained } from "../data/shown.js" */

/** @type {import("../dom.js").Panel} */
export const pipeline = {
  markup: `<ol class="pipeline" data-part="pipeline" aria-label="The model, step by step"></ol>`,
  style: `
    .pipeline { display: grid; grid-template-columns: repeat(7, minmax(0, 1fr)); gap: 22px; padding-top: 4px; border-top: 1px solid var(--line); padding: 12px 0; }
    .pipeline li { position: relative; }
    .pipeline li:not(:last-child)::after { content: "→"; position: absolute; right: -18px; top: 50%; translate: 0 -50%; color: var(--quiet); }
    .pipeline button { width: 100%; height: 100%; padding: 6px 6px; border-radius: 10px; background: var(--card); text-align: center; text-decoration: none; border: 1.5px solid transparent; font-size: 0.9em; line-height: 1.3; }
    .pipeline button:hover { border-color: var(--accent); }
    .pipeline [aria-current="step"] button { border-color: var(--mark); }
    .pipeline span { display: block; font-size: 0.85em; color: var(--quiet); }
    @container explorer (max-width: 1099px) { .pipeline { grid-template-columns: repeat(7, max-content); overflow-x: auto; } .pipeline button { padding: 8px 12px; } }`,

  start({ part, show }) {
    show((state) => {
      const here = state.step ?? step(state);
      part("pipeline").replaceChildren(
        ...steps(state.explanation).map(([term, name, about], place) => {
          const button = make("button", { type: "button", className: "term" }, { term });
          button.append(name, make("span", { textContent: about }));
          const row = make("li");
          if (place === here) row.ariaCurrent = "step";
          row.append(button);
          return row;
        }),
      );
    });
  },
};

/** Which step the map is read from: the attention, or what the classifier makes of it. */
const step = (/** @type {Explained} */ state) => (method(state).columns === "classes" ? 6 : 3);

/** @returns {[term: string, name: string, about: string][]} */
function steps(
  /** @type {Explained["explanation"]} */ { sizes, patches, prefix, layers, heads, hasClassToken, knows },
) {
  const { image, patch, width, mlp } = sizes;
  const tokens = hasClassToken ? "class token" : prefix.length ? "registers" : "";
  return [
    ["photo", "Photo", image.join(" × ")],
    ["patch", `${patches} patches`, `${patch} × ${patch}`],
    ["position embedding", tokens ? `+ ${tokens}, position` : "+ position", `${patches + prefix.length} × ${width}`],
    ["attention", `Attention × ${layers}`, `${heads} heads, Eq. 2`],
    ["MLP", `MLP × ${layers}`, `${width} → ${mlp}, Eq. 3`],
    [hasClassToken ? "class token" : "reading", hasClassToken ? "Class token" : "Mean of patches", "Eq. 4"],
    ["softmax", knows, "softmax"],
  ];
}
