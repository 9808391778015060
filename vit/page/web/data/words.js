// Names and numbers as they are written on the page.

/** @import { Head } from "./explanation.js" */

/** @param {number} share */
export const percent = (share) => `${Number((share * 100).toPrecision(3))} %`;

/**
 * @param {number} value
 * @param {string} unit
 */
export const amount = (value, unit) => (unit === "share" ? percent(value) : Number(value.toPrecision(3)).toString());

/** @param {number} number */
export const ordinal = (number) =>
  number + (number % 100 > 10 && number % 100 < 14 ? "th" : (["th", "st", "nd", "rd"][number % 10] ?? "th"));

/** @param {string} text */
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/**
 * @param {number} patch
 * @param {[number, number]} grid
 */
export const patchName = (patch, [, columns]) =>
  `patch ${patch} (row ${Math.floor(patch / columns)}, column ${patch % columns})`;

/** @param {Head} head */
export const headName = (head) =>
  head === "mean" ? "mean of the heads" : head === "max" ? "maximum of the heads" : `head ${head}`;

/** @param {string} name  of a token before the patches */
export const prefixName = (name) => (name.startsWith("register") ? name : `the ${name} token`);
