// How the model came to its answer: what it would have said after each layer.

import { capital, plain } from "./words.js";

/** @import { Explanation } from "./explanation.js" */
/** @typedef {{ label: string, from: number, to: number, shares: number[] }} Chapter  layers from … to, both with it, and how likely the label was after each */

const CLEAR = 0.2; // from this share on, what it would have said was an idea; below, the first layers say the same of any photo
const TOLD = 2; // ideas before the answer

/**
 * The likeliest label after each layer, layers that agree together.
 * @param {[string, number][][]} decided
 * @returns {Chapter[]}
 */
export function chapters(decided) {
  /** @type {Chapter[]} */
  const told = [];
  for (const [layer, [[label, share]]] of decided.entries()) {
    const last = told.at(-1);
    if (last?.label !== label) told.push({ label, from: layer, to: layer, shares: [share] });
    else {
      last.to = layer;
      last.shares.push(share);
    }
  }
  return told;
}

/** In a sentence; layers are counted as the paper does, from 1. */
export function storyText(/** @type {Explanation} */ { decided, layers }) {
  const told = chapters(decided);
  const last = told.at(-1);
  if (!last) return "";
  const clear = decided.findIndex(([[, share]]) => share >= CLEAR); // the first layer that had an idea
  if (clear < 0) return "Unclear in every layer.";
  const first = Math.max(last.from, clear); // with the answer, however unsure
  if (first === 0) return "Clear from the first layer on.";
  const others = told.slice(0, -1).filter(isClear);
  const clearest = new Set(others.sort((one, next) => highest(next) - highest(one)).slice(0, TOLD));
  const ideas = new Set(told.filter((chapter) => clearest.has(chapter)).map(({ label }) => plain(label)));
  const thought = [
    ...(clear > 0 ? [`unclear up to layer ${clear}`] : ["first"]),
    ...(ideas.size ? [`${clear > 0 ? "then " : ""}${[...ideas].join(", ")}`] : []),
  ];
  const end = first === layers - 1 ? "in the last layer" : `from layer ${first + 1} on`;
  return capital(`${thought.join(clear > 0 ? ", " : " ")}; answered ${end}.`);
}

const highest = (/** @type {Chapter} */ { shares }) => Math.max(...shares);

/** Whether it was an idea, and no mere word. */
export const isClear = (/** @type {Chapter} */ chapter) => highest(chapter) >= CLEAR;
