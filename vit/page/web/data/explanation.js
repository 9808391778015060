// One photo's explanation, as packing.py wrote it. Layers, heads, tokens and patches are counted from 0; before the
// patches come `prefix` other tokens.

/** @import { File, Tensors } from "./safetensors.js" */
/** @typedef {"mean" | "max" | number} Head */
/** @typedef {"looks_at" | "looked_at_by"} Direction */
/** @typedef {{ label: string, index: number, probability: number }} Prediction */
/**
 * @typedef {object} Method  A row of vit/explain/methods.py.
 * @property {string} name
 * @property {string} title
 * @property {string} caption  with {class} for the class's label
 * @property {string} note
 * @property {string} term  in glossary.js; "" where it has none
 * @property {string} paper
 * @property {"heads" | "classes"} columns
 * @property {"share" | ""} unit
 * @property {boolean} of_token  its maps are made here, from the attention of any token
 * @property {string | null} missing  why this checkpoint cannot give it
 */

export class Explanation {
  /**
   * @param {File} file
   * @param {ImageBitmap} picture
   * @param {string} url  of the file
   */
  constructor({ tensors, about }, picture, url) {
    this.url = url;
    this.picture = picture;
    this.tensors = tensors;
    /** @type {string} */
    this.name = about.name;
    /** @type {string | null} */
    this.example = about.example;
    /** @type {string} */
    this.model = about.model;
    /** @type {string} what the model is called, and what it knows */
    this.title = about.title;
    /** @type {string} */
    this.knows = about.knows;
    /** @type {{ image: [number, number], patch: number, width: number, mlp: number }} the model's sizes */
    this.sizes = about.sizes;
    /** @type {[number, number]} */
    this.size = about.size;
    /** @type {[number, number, number, number]} the part that the model saw */
    this.box = about.box;
    /** @type {string[]} what is not as in the photo's file, in sentences */
    this.remarks = about.remarks;
    /** @type {boolean} */
    this.cropped = about.cropped;
    /** @type {[number, number]} */
    this.grid = about.grid;
    /** @type {string[]} */
    this.prefix = about.prefix;
    /** @type {number} */
    this.layers = about.layers;
    /** @type {number} */
    this.heads = about.heads;
    /** @type {boolean} all of the attention comes, by and by */
    this.whole = about.whole;
    /** @type {Prediction[]} */
    this.predictions = about.predictions;
    /** @type {boolean} it is like nothing that the model was trained on */
    this.unfamiliar = about.unfamiliar;
    /** @type {[string, number][][]} after each layer, the labels that it would end with */
    this.decided = about.decided;
    /** @type {number[]} after each layer, the probability of the likeliest class */
    this.lens = about.lens;
    /** @type {Method[]} */
    this.methods = about.methods.filter((/** @type {Method} */ method) => !method.missing);
    /** @type {Method[]} */
    this.missing = about.methods.filter((/** @type {Method} */ method) => method.missing);
    this.patches = this.grid[0] * this.grid[1];
    this.tokens = this.prefix.length + this.patches;
    /** @type {Head[]} */
    this.columns = ["mean", "max", ...Array(this.heads).keys()];
  }

  get hasClassToken() {
    return this.prefix.includes("class");
  }

  /** The patch of a token; null for the tokens before them. */
  patchOf(/** @type {number} */ token) {
    return token < this.prefix.length ? null : token - this.prefix.length;
  }

  tokenOf(/** @type {number} */ patch) {
    return this.prefix.length + patch;
  }

  get middlePatch() {
    const [rows, columns] = this.grid;
    return Math.floor(rows / 2) * columns + Math.floor(columns / 2);
  }

  /** The class token, or the middle patch of a model that has none. */
  get firstToken() {
    return this.hasClassToken ? 0 : this.tokenOf(this.middlePatch);
  }

  /** Whether there are sinks in any layer. */
  get sinks() {
    return this.tensors.outliers.data.some(Boolean);
  }

  /** Whether sinks can be moved to registers: only one with none has something to gain. */
  get canHaveRegisters() {
    return this.sinks && !this.prefix.some((name) => name.startsWith("register"));
  }

  /** A flag for each patch. */
  outliers(/** @type {number} */ layer) {
    return this.tensors.outliers.data.subarray(layer * this.patches, (layer + 1) * this.patches);
  }

  /**
   * What a token looks at, or what looks at it, by head and token; null where the server has to be asked first.
   * @param {number} token
   * @param {Direction} direction
   * @param {number} layer
   * @param {Tensors | null} attention  all of it, when it has come
   * @param {Map<number, Tensors>} asked  the looks of single tokens
   * @returns {Float32Array[] | null}
   */
  looks(token, direction, layer, attention, asked) {
    const { heads, tokens } = this;
    if (!attention) {
      const looks = asked.get(token);
      if (!looks?.[direction]) return null;
      const scales = looks[`${direction}_scale`];
      const shares = looks[direction].data;
      return Array.from({ length: heads }, (_, head) => {
        const row = layer * heads + head;
        return Float32Array.from(shares.subarray(row * tokens, (row + 1) * tokens), (share) =>
          scales ? scales.data[row] * share * share : share,
        );
      });
    }
    const found = Array.from({ length: heads }, () => new Float32Array(tokens));
    const shares = attention.attention.data;
    const scales = attention.scale.data;
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
}
