// How the model came to its answer: what it would have said after each layer.

/** @import { Explanation } from "./explanation.js" */
/** @typedef {{ label: string, from: number, to: number }} Chapter  layers from … to, both with it */

/**
 * The likeliest label after each layer, layers that agree together.
 * @param {[string, number][][]} decided
 * @returns {Chapter[]}
 */
export function chapters(decided) {
  /** @type {Chapter[]} */
  const told = [];
  for (const [layer, [[label]]] of decided.entries()) {
    const last = told.at(-1);
    if (last?.label === label) last.to = layer;
    else told.push({ label, from: layer, to: layer });
  }
  return told;
}

/** In a sentence; layers are counted as the paper does, from 1. */
export function storyText(/** @type {Explanation} */ { decided, layers }) {
  const told = chapters(decided);
  const last = told.at(-1);
  if (!last) return "";
  if (told.length === 1) return "It was sure from the first layer on.";
  const longest = told.slice(0, -1).reduce((one, other) => (other.to - other.from > one.to - one.from ? other : one));
  const settled = last.from === layers - 1 ? "only the last layer settled it" : `settled in layer ${last.from + 1}`;
  const first = longest.to > longest.from ? `${longest.label} until layer ${longest.to + 1}` : longest.label;
  return `It thought of ${first}; ${settled}.`;
}
