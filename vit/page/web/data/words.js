// Names and numbers as they are written on the page. People count layers, heads, rows and columns from 1.

/** @import { Head } from "./explanation.js" */

/** A share with the digits that a person needs. */
export function percent(/** @type {number} */ share) {
  const value = share * 100;
  if (value > 99.5 && value < 100) return "> 99 %";
  if (value !== 0 && Math.abs(value) < 0.01) return "< 0.01 %";
  return `${Number(value.toFixed(Math.abs(value) < 0.1 ? 2 : Math.abs(value) < 9.95 ? 1 : 0))} %`;
}

/**
 * @param {number} value
 * @param {string} unit
 */
export const amount = (value, unit) => (unit === "share" ? percent(value) : Number(value.toPrecision(2)).toString());

/** @param {number} number */
export const ordinal = (number) =>
  number + (number % 100 > 10 && number % 100 < 14 ? "th" : (["th", "st", "nd", "rd"][number % 10] ?? "th"));

/** @param {string} text */
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** Labels as files and datasets write them. */
export const plain = (/** @type {string} */ label) => label.replaceAll("_", " ");

/**
 * @param {number} patch
 * @param {[number, number]} grid
 */
export const patchName = (patch, [, columns]) =>
  `the patch in row ${Math.floor(patch / columns) + 1}, column ${(patch % columns) + 1}`;

export const layerName = (/** @type {number} */ layer) => `layer ${layer + 1}`;

/** @param {Head} head */
export const headName = (head) =>
  head === "mean" ? "mean of the heads" : head === "max" ? "maximum of the heads" : `head ${head + 1}`;

/** @param {Head | string} column  a head, or a class's label */
export const columnName = (column) =>
  column === "mean" ? "all" : typeof column === "number" ? `head ${column + 1}` : String(column);

/** @param {string} name  of a token before the patches */
export const prefixName = (name) => (name.startsWith("register") ? name : `the ${name} token`);
