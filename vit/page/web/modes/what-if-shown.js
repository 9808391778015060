// What "What if" shows: the changes, what is asked of them, and what became of the photo.

import { memo } from "../data/derive.js";
import { attentionMaps } from "../data/maps.js";
import { read } from "./changes.js";

/** @import { Explanation } from "../data/explanation.js" */
/** @import { Explained } from "../data/shown.js" */

export const changesOf = memo((/** @type {string} */ at) => read(at));
/** What is asked: the changes, and the classes whose shares are watched. */
export const questionOf = (/** @type {Explained} */ { at, explanation }) => ({
  ...changesOf(at),
  classes: explanation.predictions.map(({ index }) => index),
});

/** What became of it, or what it is while nothing has changed. */
export const after = (/** @type {Explained} */ { told, explanation }) =>
  /** @type {Explanation} */ (told.ask_what_if?.explanation ?? explanation);

/** What the class token looks at, in a layer; null where there is none. */
export function look(
  /** @type {Explained} */ state,
  /** @type {Explanation} */ explanation,
  /** @type {number} */ layer,
) {
  if (!explanation.tensors.looks_at) return null;
  const found = attentionMaps(explanation, null, new Map([[0, explanation.tensors]]), 0, "looks_at");
  const values = found?.layers[layer][0] ?? null;
  const flagged = explanation.outliers(layer);
  return values && state.leaveOut ? values.map((value, patch) => (flagged[patch] ? 0 : value)) : values;
}

/** The state as if the other explanation were shown. */
export const shownAs = (/** @type {Explained} */ state, /** @type {Explanation} */ explanation) =>
  /** @type {Explained} */ ({ ...state, explanation, scale: "own" });
