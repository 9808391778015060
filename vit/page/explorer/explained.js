// One photo's explanation in the page. Layers, heads, tokens and patches are counted from 0; before the patches come
// `prefix` other tokens. The columns of maps are the mean of the heads, their maximum, then each head.

class Explained {
  constructor({ tensors, about }, picture) {
    Object.assign(this, about); // layers, heads, prefix, grid, box, size, predictions, lens …: see packing.py
    this.tensors = tensors;
    this.picture = picture;
    this.patches = this.grid[0] * this.grid[1];
    this.tokens = this.prefix.length + this.patches;
    this.columns = ["mean", "max", ...Array(this.heads).keys()];
    this.maps = {}; // rollout, relevance 0 …: they come after the attention
    this.asked = new Map(); // the looks of single tokens, where the attention is too large to come whole
    if (tensors.looks_at) this.asked.set(0, tensors);
  }

  // What a token looks at, or what looks at it, by head and token; null where the server has to be asked first.
  looks(token, direction, layer) {
    const { heads, tokens } = this;
    if (!this.whole) {
      const data = this.asked.get(token)?.[direction].data;
      if (!data) return null;
      return Array.from({ length: heads }, (_, head) =>
        data.subarray((layer * heads + head) * tokens, (layer * heads + head + 1) * tokens),
      );
    }
    const found = Array.from({ length: heads }, () => new Float32Array(tokens));
    const shares = this.tensors.attention.data,
      scales = this.tensors.scale.data;
    for (let head = 0; head < heads; head++) {
      const first = (layer * heads + head) * tokens; // the first row of this head
      for (let other = 0; other < tokens; other++) {
        const row = first + (direction === "looks_at" ? token : other);
        const share = shares[row * tokens + (direction === "looks_at" ? other : token)];
        found[head][other] = scales[row] * share * share; // square roots were sent, which keep small shares exact
      }
    }
    return found;
  }

  // All maps that a view can show: for each layer and column the patches' values, and what the other tokens get.
  stack({ map, token, direction, chosen, against }) {
    if (map === "attention") {
      const layers = [];
      for (let layer = 0; layer < this.layers; layer++) {
        const looks = this.looks(token, direction, layer);
        if (!looks) return null;
        layers.push([mean(looks), max(looks), ...looks]);
      }
      const first = this.prefix.length;
      return {
        columns: this.columns,
        layers: layers.map((columns) => columns.map((values) => values.subarray(first))),
        elsewhere: layers.map((columns) => columns.map((values) => values.subarray(0, first))),
        percent: true,
      };
    }
    if (map === "rollout") {
      const rollout = this.maps.rollout;
      return rollout && { columns: this.columns, layers: this.byLayer(rollout), percent: true };
    }
    const relevance = this.predictions
      .map((_, rank) => this.maps[`relevance ${rank}`])
      .map((found) => found && this.byLayer(found));
    if (against === null) {
      if (!relevance[chosen]) return null;
      const ranks = [...relevance.keys()].filter((rank) => relevance[rank]);
      const layers = Array.from({ length: this.layers }, (_, layer) => ranks.map((rank) => relevance[rank][layer][0]));
      return { columns: ranks.map((rank) => this.predictions[rank].label), ranks, layers };
    }
    if (!relevance[chosen] || !relevance[against]) return null;
    const layers = Array.from({ length: this.layers }, (_, layer) => {
      const [one, other] = [relevance[chosen][layer][0], relevance[against][layer][0]];
      return [one.map((value, patch) => value - other[patch])];
    });
    return { columns: ["difference"], layers, signed: true };
  }

  // A tensor (columns, layers, patches) as arrays by layer and column.
  byLayer({ data, shape: [columns, layers, patches] }) {
    return Array.from({ length: layers }, (_, layer) =>
      Array.from({ length: columns }, (_, column) => {
        const start = (column * layers + layer) * patches;
        return data.subarray(start, start + patches);
      }),
    );
  }

  outliers(layer) {
    return this.tensors.outliers.data.subarray(layer * this.patches, (layer + 1) * this.patches);
  }
}

const mean = (arrays) =>
  arrays[0].map((_, index) => arrays.reduce((sum, values) => sum + values[index], 0) / arrays.length);
const max = (arrays) => arrays[0].map((_, index) => Math.max(...arrays.map((values) => values[index])));

const withoutOutliers = (values, flagged) => values.map((value, patch) => (flagged[patch] ? 0 : value));

function range(arrays, signed) {
  let low = Infinity,
    high = -Infinity;
  for (const values of arrays)
    for (const value of values) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
  return signed ? [-Math.max(-low, high), Math.max(-low, high)] : [low, high];
}
