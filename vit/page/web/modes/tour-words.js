// The tour's texts with the model's numbers in them, and its letters in their colours.

import { make } from "../dom.js";

/** @import { Explained } from "../data/shown.js" */

/** The numbers that texts may name. */
export function numbers(/** @type {Explained} */ { explanation, layer, head }) {
  const { sizes, patches, layers, heads, knows, hasClassToken, sinks, prefix, canHaveRegisters } = explanation;
  const { image, patch, width, mlp } = sizes;
  const found = [...explanation.outliers(layer)].filter(Boolean).length;
  const registers = prefix.filter((name) => name.startsWith("register")).length;
  return {
    knows,
    size: image.join(" × "),
    patches,
    patch,
    pixels: 3 * patch * patch,
    width,
    mlp,
    layers,
    heads,
    headwidth: width / heads,
    layer: layer + 1,
    head: typeof head === "number" ? head + 1 : 1,
    joins: hasClassToken
      ? ", and one token more joins, which is no patch: the class token. It will carry the answer"
      : "",
    read: hasClassToken ? "the class token" : "the mean of all patches",
    sinks: registers
      ? `This model has ${registers} registers${sinks ? "" : ", and no such patch is left"}.`
      : canHaveRegisters
        ? `In this layer: ${found}. Give it registers, and look again.`
        : "This model has none in this photo.",
  };
}

/**
 * A text with its numbers.
 * @param {string} text
 * @param {Record<string, unknown>} known
 */
export const fill = (text, known) => text.replace(/\{(\w+)\}/g, (_, name) => String(known[name]));

/**
 * The same as nodes: letters between underscores get their colours.
 * @param {string} text
 * @param {Record<string, unknown>} known
 */
export function coloured(text, known) {
  return text
    .split(/_(\w)_/)
    .map((piece, place) =>
      place % 2 ? make("var", { className: piece.toLowerCase(), textContent: piece }) : fill(piece, known),
    );
}

/** A number with the digits that a check by hand needs. */
export function digits(/** @type {number} */ value, count = 4) {
  const text = Math.abs(value) >= 1e5 || (value && Math.abs(value) < 1e-3) ? value.toExponential(count - 1) : "";
  return (text || Number(value.toPrecision(count)).toString()).replace("-", "−");
}
