// The tour's texts with the model's numbers in them, and its letters in their colours.

import { make } from "../dom.js";

/** @import { Explained } from "../data/shown.js" */

/** The numbers that texts may name. */
export function numbers(/** @type {Explained} */ { explanation, layer, head, told }) {
  const { sizes, patches, layers, heads, knows, hasClassToken, sinks, prefix, canHaveRegisters } = explanation;
  const { image, patch, width, mlp } = sizes;
  const found = [...explanation.outliers(layer)].filter(Boolean).length;
  const registers = prefix.filter((name) => name.startsWith("register")).length;
  const { nearest, farthest } = told.ask_figures?.about ?? { nearest: [], farthest: [] };
  const pixels = (/** @type {number | undefined} */ length) => (length === undefined ? "…" : Math.round(length));
  return {
    knows,
    size: image.join(" × "),
    high: image[0],
    wide: image[1],
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
      ? ` The class token joins, which is no patch and will carry the answer${registers ? `, and ${registers} registers (page 13)` : ""}: ${patches + prefix.length} tokens.`
      : "",
    near: pixels(nearest[0]),
    far: pixels(farthest[0]),
    "last-near": pixels(nearest.at(-1)),
    "last-far": pixels(farthest.at(-1)),
    read: hasClassToken ? "the class token" : "the mean of all patches",
    sinks: registers
      ? `Left: with its ${registers} registers${sinks ? "" : ", no such patch is left"}. Right: the same model without them.`
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
export const fill = (text, known) => text.replace(/\{([\w-]+)\}/g, (_, name) => String(known[name]));

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
  const size = Math.abs(value);
  if (!size || (size >= 1e-3 && size < 1e5)) return Number(value.toPrecision(count)).toString().replace("-", "−");
  const [number, power] = value.toExponential(count - 1).split("e");
  return `${number} · 10${[...power.replace("+", "")].map((digit) => RAISED[digit]).join("")}`.replace("-", "−");
}

/** @type {Record<string, string>} */
const RAISED = { "-": "⁻", ...Object.fromEntries([..."⁰¹²³⁴⁵⁶⁷⁸⁹"].map((digit, value) => [value, digit])) };

/** A share with as many. */
export const share = (/** @type {number} */ value) => `${digits(value * 100, 3)} %`;
