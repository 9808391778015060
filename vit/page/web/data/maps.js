// The maps of a method: for each layer and column the patches' values.

/** @import { Direction, Explanation } from "./explanation.js" */
/** @import { Tensor, Tensors } from "./safetensors.js" */
/** @typedef {[low: number, high: number]} Scale */
/**
 * @typedef {object} Maps
 * @property {(string | number)[]} columns  heads, or labels of classes
 * @property {Float32Array[][]} layers  by layer and column; a single layer where a map is of the whole model
 * @property {Float32Array[][]} [elsewhere]  what the tokens before the patches get
 * @property {number[]} [ranks]  of the classes in the columns
 * @property {boolean} [signed]
 */

/**
 * What a token looks at, or what looks at it; null where the server has to be asked first.
 * @param {Explanation} explanation
 * @param {Tensors | null} attention
 * @param {Map<number, Tensors>} asked
 * @param {number} token
 * @param {Direction} direction
 * @returns {Maps | null}
 */
export function attentionMaps(explanation, attention, asked, token, direction) {
  const layers = [];
  for (let layer = 0; layer < explanation.layers; layer++) {
    const looks = explanation.looks(token, direction, layer, attention, asked);
    if (!looks) return null;
    layers.push([mean(looks), max(looks), ...looks]);
  }
  const first = explanation.prefix.length;
  return {
    columns: explanation.columns,
    layers: layers.map((columns) => columns.map((values) => values.subarray(first))),
    elsewhere: layers.map((columns) => columns.map((values) => values.subarray(0, first))),
  };
}

/**
 * The maps of the classes that are here, or the difference of two; null while they are on their way.
 * @param {string[]} labels
 * @param {(Tensor | undefined)[]} tensors  (1, layers, patches) for each class
 * @param {number} chosen
 * @param {number | null} against
 * @returns {Maps | null}
 */
export function classMaps(labels, tensors, chosen, against) {
  const found = tensors.map((tensor) => tensor && byLayer(tensor));
  const [one, other] = [found[chosen], against === null ? undefined : found[against]];
  if (!one || (against !== null && !other)) return null;
  if (other) {
    const layers = one.map(([values], layer) => [values.map((value, patch) => value - other[layer][0][patch])]);
    return { columns: ["difference"], layers, signed: true };
  }
  const ranks = [...found.keys()].filter((rank) => found[rank]);
  const layers = one.map((_, layer) => ranks.map((rank) => /** @type {Float32Array[][]} */ (found[rank])[layer][0]));
  return { columns: ranks.map((rank) => labels[rank]), ranks, layers };
}

/**
 * A tensor (columns, layers, patches) as arrays by layer and column.
 * @param {Tensor} tensor
 */
export function byLayer({ data, shape: [columns, layers, patches] }) {
  return Array.from({ length: layers }, (_, layer) =>
    Array.from({ length: columns }, (_, column) => {
      const start = (column * layers + layer) * patches;
      return /** @type {Float32Array} */ (data.subarray(start, start + patches));
    }),
  );
}

/**
 * The maps without the patches that are flagged in their layer, those of the whole model without the last layer's.
 * @param {Maps} maps
 * @param {Explanation} explanation
 * @returns {Maps}
 */
export function withoutOutliers(maps, explanation) {
  const first = explanation.layers - maps.layers.length;
  const layers = maps.layers.map((columns, layer) => {
    const flagged = explanation.outliers(first + layer);
    return columns.map((values) => values.map((value, patch) => (flagged[patch] ? 0 : value)));
  });
  return { ...maps, layers };
}

/** @param {Float32Array[]} arrays */
export const mean = (arrays) =>
  arrays[0].map((_, index) => arrays.reduce((sum, values) => sum + values[index], 0) / arrays.length);

/** @param {Float32Array[]} arrays */
export const max = (arrays) => arrays[0].map((_, index) => Math.max(...arrays.map((values) => values[index])));

/**
 * From the lowest to the highest value; where they are signed, as far below zero as above.
 * @param {Float32Array[]} arrays
 * @param {boolean} [signed]
 * @returns {Scale}
 */
export function range(arrays, signed = false) {
  let low = Infinity;
  let high = -Infinity;
  for (const values of arrays)
    for (const value of values) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
  return signed ? [-Math.max(-low, high), Math.max(-low, high)] : [low, high];
}
