// How a map is to be seen: how light each place is, where most of the look lies, and what lies between patches.

/** @import { Scale } from "./maps.js" */

/** The ways to lay a map over a photo; the first is the one that a photo opens with. */
export const OVERLAY_NAMES = ["spotlight", "tiles", "contours", "heat"];
export const FINE = 8; // steps from one patch to the next where a map goes smoothly
export const LEVELS = [0.25, 0.5, 0.75]; // shares of the look that contours enclose

const [DARKEST, LIGHTEST] = [0.05, 0.985]; // quantiles: what is beyond them is quite dark, or quite light

/**
 * The value below which this share of sorted values lies, between two of them where need be.
 * @param {ArrayLike<number>} sorted
 * @param {number} share
 */
export function quantile(sorted, share) {
  const place = share * (sorted.length - 1);
  const first = Math.floor(place);
  const next = Math.min(sorted.length - 1, first + 1);
  return sorted[first] + (sorted[next] - sorted[first]) * (place - first);
}

/**
 * The values that are dark, and that are light.
 * @param {Float32Array} values
 * @returns {Scale}
 */
export function lightScale(values) {
  const sorted = values.slice().sort();
  return [quantile(sorted, DARKEST), quantile(sorted, LIGHTEST)];
}

/** How light a value is, from 0 to 1: its place on the scale to the power of 3/4, by roots, which are quick. */
export function lightness(/** @type {number} */ value, /** @type {Scale} */ [dark, light]) {
  if (light <= dark) return value > dark ? 1 : 0;
  const place = Math.min(1, Math.max(0, (value - dark) / (light - dark)));
  return Math.sqrt(place * Math.sqrt(place));
}

/**
 * For each share the value above which so much of the sum lies.
 * @param {Float32Array} values
 * @param {number[]} shares
 */
export function levels(values, shares = LEVELS) {
  const sorted = values.slice().sort().reverse();
  const total = sorted.reduce((sum, value) => sum + Math.max(0, value), 0);
  return shares.map((share) => {
    let sum = 0;
    for (const value of sorted) {
      sum += Math.max(0, value);
      if (sum >= share * total) return value;
    }
    return 0;
  });
}

/**
 * The values evenly between the middles of patches, `fine` steps to a patch.
 * @param {Float32Array} values
 * @param {[number, number]} grid
 * @param {number} fine
 */
export function between(values, [rows, columns], fine = FINE) {
  if (fine === 1) return values;
  const [across, down] = [places(columns, fine), places(rows, fine)];
  const made = new Float32Array(rows * columns * fine * fine);
  let to = 0;
  for (const [above, below, share] of down)
    for (const [left, right, part] of across) {
      const top = values[above * columns + left] * (1 - part) + values[above * columns + right] * part;
      const bottom = values[below * columns + left] * (1 - part) + values[below * columns + right] * part;
      made[to++] = top * (1 - share) + bottom * share;
    }
  return made;
}

/**
 * For each fine step the two cells that it lies between, and how far it is from the first.
 * @param {number} cells
 * @param {number} fine
 */
function places(cells, fine) {
  return Array.from({ length: cells * fine }, (_, step) => {
    const middle = Math.min(cells - 1, Math.max(0, (step + 0.5) / fine - 0.5));
    const first = Math.floor(middle);
    return [first, Math.min(cells - 1, first + 1), middle - first];
  });
}

/**
 * The lines along which values (height × width, at the middles of their cells) are equal to a level: [x, y, x, y] each.
 * @param {Float32Array} values
 * @param {number} width
 * @param {number} level
 * @returns {[number, number, number, number][]}
 */
export function contour(values, width, level) {
  const height = values.length / width;
  /** @type {[number, number, number, number][]} */
  const lines = [];
  for (let y = 0; y + 1 < height; y++)
    for (let x = 0; x + 1 < width; x++) {
      const corners = [
        [x, y],
        [x + 1, y],
        [x + 1, y + 1],
        [x, y + 1],
      ];
      const found = corners.map(([across, down]) => values[down * width + across] - level);
      /** @type {number[][]} */
      const cuts = [];
      for (let side = 0; side < 4; side++) {
        const [one, other] = [found[side], found[(side + 1) % 4]];
        if (one >= 0 === other >= 0) continue;
        const [from, to] = [corners[side], corners[(side + 1) % 4]];
        const part = one / (one - other);
        cuts.push([from[0] + (to[0] - from[0]) * part + 0.5, from[1] + (to[1] - from[1]) * part + 0.5]);
      }
      for (let cut = 0; cut + 1 < cuts.length; cut += 2)
        lines.push([cuts[cut][0], cuts[cut][1], cuts[cut + 1][0], cuts[cut + 1][1]]);
    }
  return lines;
}
