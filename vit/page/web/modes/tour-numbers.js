// What stands under each page of the tour: the numbers of the pass, as tables, bars and strips of colour.

import { layerName, patchName, percent, plain } from "../data/words.js";
import { make } from "../dom.js";
import { heatTile } from "../draw/heat.js";
import { coloursOf } from "../draw/picture.js";
import { coloured, digits, share } from "./tour-words.js";

/** @import { Explained } from "../data/shown.js" */
/** @import { File } from "../data/safetensors.js" */
/** @typedef {{ state: Explained, figures: File | null, trace: File | null, act: Record<string, () => void> }} Known */

const FIRST = 3; // numbers of a vector that are written
const PLACES = 3; // after the point, of what is summed
const LONGEST = 40; // percent of the width that the longest bar has

/** @type {Record<string, (known: Known) => (Element | null)[]>} */
export const NUMBERS = {
  embedding({ state, figures, trace }) {
    if (!trace) return [];
    return [
      vector("x", "x", trace, "pixels", state),
      vector("e", "xE", trace, "embedding", state),
      figures?.tensors.filters ? filters(figures) : null,
      features(trace, state),
    ];
  },

  position({ state, trace }) {
    if (!trace) return [];
    return [
      vector("e", "xE", trace, "embedding", state),
      vector("p", "p", trace, "position", state),
      vector("z", "z", trace, "start", state),
    ];
  },

  qkv({ state, trace }) {
    if (!trace) return [];
    return [
      vector("z", "z", trace, "before", state),
      vector("z", "LN(z)", trace, "normed", state),
      vector("q", "q", trace, "query", state),
      vector("k", "k", trace, "keys", state, trace.about.listed.length - 1),
      vector("v", "v", trace, "values", state, trace.about.listed.length - 1),
    ];
  },

  scores({ state, trace }) {
    if (!trace) return [];
    const { products, scores, terms, attention, query, keys } = trace.tensors;
    const { listed, groups, total, others } = trace.about;
    const rows = listed.map((/** @type {number} */ token, /** @type {number} */ place) => [
      tokenName(state, token, place),
      digits(products.data[token]),
      digits(scores.data[token]),
      digits(terms.data[token]),
      share(attention.data[token]),
    ]);
    const together = groups.map((/** @type {any} */ { name, term, ...group }) => [
      ...[name, "", "", digits(term), share(group.share)],
    ]);
    return [
      table(
        ["", "_q_·_k_", `÷ √${query.data.length}`, "eˣ", ["share", "a"]],
        [...rows, ...together, ["sum", "", "", digits(total), share(1)]],
        "scores",
        true,
      ),
      said("product", byHand(query.data, keys.data, others, products.data[listed[0]])),
    ];
  },

  sum({ state, trace }) {
    if (!trace) return [];
    const { attention, values, weighted } = trace.tensors;
    const { listed, groups } = trace.about;
    const first = (/** @type {ArrayLike<number>} */ data, from = 0) =>
      Array.from({ length: FIRST }, (_, at) => digits(Number(data[from + at].toFixed(PLACES)), 3));
    const rows = listed.map((/** @type {number} */ token, /** @type {number} */ place) => [
      tokenName(state, token, place),
      share(attention.data[token]),
      ...first(values.data, place * weighted.data.length),
    ]);
    const together = groups.map((/** @type {any} */ { name, values, ...group }) => [
      ...[`${name} *`, share(group.share), ...first(values)],
    ]);
    return [
      table(
        ["", ["share", "a"], ["v₁", "v"], ["v₂", "v"], ["v₃", "v"]],
        [...rows, ...together, ["share × v, summed", share(1), ...first(weighted.data)]],
        "sum",
        true,
      ),
      said("together", "* together, and already times their shares"),
      vector("v", "Σ av", trace, "weighted", state),
    ];
  },

  residual({ trace }) {
    if (!trace) return [];
    const { before, msa, between } = trace.about.lengths;
    return [
      lengths([
        ["z before", "z", before, "before"],
        ["what the heads add", "a", msa, "msa"],
        ["z after", "z", between, "between"],
      ]),
      said(
        "turned",
        `It turned by ${digits(trace.about.turned, 3)}°. Lengths do not simply add up: the two vectors point different ways.`,
      ),
    ];
  },

  mlp({ trace }) {
    if (!trace) return [];
    const { activations, written, active } = trace.tensors;
    const { between, mlp, after } = trace.about.lengths;
    const rows = trace.about.neurons.map((/** @type {number} */ neuron, /** @type {number} */ place) => [
      `neuron ${neuron + 1}`,
      digits(activations.data[place], 3),
      digits(written.data[place], 3),
    ]);
    return [
      table(["", "says, after the GELU", "writes, as a length"], rows, "neurons"),
      said("active", `${percent(active.data[0])} of the neurons say something above 0.`),
      lengths([
        ["z before", "z", between, "between"],
        ["what the MLP adds", "a", mlp, "mlp"],
        ["z after", "z", after, "after"],
      ]),
    ];
  },

  layers({ state }) {
    const { decided } = state.explanation;
    if (!decided.length) return [];
    const rows = decided.map(([[label, share]], layer) => [layerName(layer), plain(label), percent(share)]);
    return [table(["after", "it would say", ""], rows, "decided", true)];
  },

  answer({ state, figures }) {
    if (!figures) return [];
    const { logits, terms, others, others_share, total, logit } = figures.about;
    if (!logits) return [said("logits", "This model has no classes: its tokens are the answer.")];
    const rows = state.explanation.predictions.map(({ label, probability }, place) => [
      plain(label),
      digits(logits[place]),
      digits(terms[place]),
      share(probability),
    ]);
    return [
      vector("y", "y", figures, "pooled", state),
      table(
        ["", ["logit", "y"], "eˣ", "share"],
        [...rows, ["all others", "", digits(others), share(others_share)], ["sum", "", digits(total), share(1)]],
        "logits",
        true,
      ),
      logit && written(logit, plain(state.explanation.predictions[0].label), digits(logits[0])),
    ];
  },

  distance({ figures }) {
    if (!figures) return [];
    const { data, shape } = figures.tensors.distance;
    const [layers, heads] = shape;
    const rows = Array.from({ length: layers }, (_, layer) => [
      layerName(layer),
      ...Array.from({ length: heads }, (_, head) => digits(data[layer * heads + head], 3)),
    ]);
    return [folded("The numbers, in pixels", table(["", ...head(heads)], rows, "distance"))];
  },

  sinks({ state, figures, act }) {
    if (!figures) return [];
    const { explanation, layer } = state;
    const { lengths, lengths_before } = figures.about;
    const kinds = [
      ["middle", "the middle one of all patches"],
      ["longest", "the longest patch"],
      ["register", "a register, on average"],
    ];
    const columns = [lengths[layer], ...(lengths_before ? [lengths_before[layer]] : [])];
    const cells = (/** @type {string} */ kind) =>
      columns.map((lengths) => (lengths[kind] === undefined ? "" : digits(lengths[kind], 3)));
    const rows = kinds
      .filter(([kind]) => lengths[layer][kind] !== undefined)
      .map(([kind, text]) => [text, ...cells(kind)]);
    const given = explanation.model.endsWith("#registers");
    return [
      table(["length of", ...(lengths_before ? ["with registers", "without"] : [""])], rows, "norms"),
      explanation.canHaveRegisters ? button("registers", "Give it registers", act.give) : null,
      given ? button("registers", "Without them", act.takeBack) : null,
    ];
  },

  without({ act }) {
    return [button("take-away", "Take it away", act.takeAway)];
  },
};

const head = (/** @type {number} */ count) => Array.from({ length: count }, (_, place) => `head ${place + 1}`);

/**
 * @param {(string | [text: string, letter: string])[]} titles
 * @param {string[][]} rows
 * @param {string} part
 * @param {boolean} [summed]  the last row is what the others come to
 */
function table(titles, rows, part, summed = false) {
  const made = make("table", { className: summed ? "summed" : "" }, { part: `numbers-${part}` });
  const first = made.createTHead().insertRow();
  for (const title of titles) {
    const [text, className] = typeof title === "string" ? [title, ""] : title;
    const cell = make(text ? "th" : "td", { className, ...(text && { scope: "col" }) });
    cell.append(...coloured(text, {}));
    first.append(cell);
  }
  const body = made.createTBody();
  for (const [name, ...cells] of rows) {
    const row = body.insertRow();
    row.append(make("th", { textContent: name, scope: "row" }));
    for (const textContent of cells) row.append(make("td", { textContent }));
  }
  const frame = make("div", { className: "wide", tabIndex: 0, role: "group", ariaLabel: "Numbers" });
  frame.append(made);
  return frame;
}

/**
 * A vector as a strip of colours, red above 0 and blue below, with its first numbers.
 * @param {string} letter
 * @param {string} name
 * @param {File} file
 * @param {string} key
 * @param {Explained} state
 * @param {number} [row]  of several
 */
function vector(letter, name, file, key, state, row) {
  const { data, shape } = file.tensors[key];
  const width = row === undefined ? data.length : shape[1];
  const values = new Float32Array(data.subarray((row ?? 0) * width, ((row ?? 0) + 1) * width));
  const made = make("figure", { className: "vector" }, { part: `vector-${key}` });
  const canvas = make("canvas", { ariaHidden: "true" });
  const highest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const look = { colours: coloursOf(state), signed: true, smooth: false };
  const strip = heatTile(values, [1, width], [-highest, highest], look);
  [canvas.width, canvas.height] = [width, 1];
  canvas.getContext("2d").drawImage(strip, 0, 0);
  const written = Array.from(values.subarray(0, FIRST), (value) => digits(value, 3)).join("  ");
  made.append(
    make("var", { className: letter, textContent: name }),
    canvas,
    make("span", { className: "quiet", textContent: `${width} numbers: ${written} …` }),
  );
  return made;
}

/**
 * A product of two vectors as it is written, to be checked by hand.
 * @param {ArrayLike<number>} one
 * @param {ArrayLike<number>} other
 * @param {number} others  what all products but the first come to
 * @param {number} total
 */
function byHand(one, other, others, total) {
  const first = Array.from({ length: FIRST }, (_, at) => `${places(one[at])} × ${places(other[at])}`);
  const rest = `${places(others)} (the other ${one.length - FIRST} products)`;
  return `q·k of 1: ${[...first, rest].join(" + ")} = ${places(total)}`.replaceAll("+ −", "− ");
}

const places = (/** @type {number} */ value) => value.toFixed(PLACES).replace("-", "−");

/**
 * The largest terms of a logit, each what is read times a weight.
 * @param {any} logit
 * @param {string} name
 * @param {string} total
 */
function written(logit, name, total) {
  const rows = logit.numbers.map((/** @type {number} */ number, /** @type {number} */ place) => [
    `number ${number + 1} of ${logit.count}`,
    ...[logit.read, logit.weights, logit.terms].map((values) => digits(values[place], 4)),
  ]);
  return table(
    [`logit of ${name}`, ["y", "y"], "× weight", "= term"],
    [
      ...rows,
      ["all other terms", "", "", digits(logit.others, 3)],
      ["bias", "", "", digits(logit.bias, 3)],
      ["sum", "", "", total],
    ],
    "logit",
    true,
  );
}

/** The principal components of the filters. */
function filters(/** @type {File} */ { tensors: { filters } }) {
  const [count, , side] = filters.shape;
  const made = make("div", { className: "filters", role: "img" }, { part: "filters" });
  made.ariaLabel = `The first ${count} principal components of the filters`;
  for (let tile = 0; tile < count; tile++) {
    const canvas = make("canvas", { width: side, height: side });
    const pixels = new ImageData(side, side);
    for (let at = 0; at < side * side; at++) {
      for (let colour = 0; colour < 3; colour++)
        pixels.data[at * 4 + colour] = filters.data[(tile * 3 + colour) * side * side + at];
      pixels.data[at * 4 + 3] = 255;
    }
    canvas.getContext("2d").putImageData(pixels, 0, 0);
    made.append(canvas);
  }
  return made;
}

/**
 * What a few filters find in the whole photo.
 * @param {File} trace
 * @param {Explained} state
 */
function features({ tensors: { features }, about }, state) {
  const { grid, patches } = state.explanation;
  const made = make("div", { className: "features" }, { part: "features" });
  for (const [place, channel] of about.channels.entries()) {
    const values = /** @type {Float32Array} */ (features.data.subarray(place * patches, (place + 1) * patches));
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const tile = heatTile(values, grid, [low, high], { colours: coloursOf(state), smooth: false });
    const canvas = make("canvas", { width: tile.width, height: tile.height, ariaHidden: "true" });
    canvas.getContext("2d").drawImage(tile, 0, 0);
    const one = make("figure");
    one.append(canvas, make("figcaption", { className: "quiet", textContent: `filter ${channel + 1}` }));
    made.append(one);
  }
  return made;
}

/** Bars for lengths of vectors. */
function lengths(/** @type {[text: string, letter: string, length: number, part: string][]} */ rows) {
  const highest = Math.max(...rows.map(([, , length]) => length));
  const made = make("div", { className: "lengths" });
  for (const [text, letter, length, part] of rows) {
    const row = make("p");
    const bar = make("i", { className: letter });
    bar.style.width = `${(length / highest) * LONGEST}%`;
    const shown = make("span", { textContent: `‖${text}‖ = ` });
    row.append(shown, make("b", { textContent: digits(length, 3) }, { part: `length-${part}` }), bar);
    made.append(row);
  }
  return made;
}

/** @param {string} part @param {string} textContent */
const said = (part, textContent) => make("p", { textContent }, { part: `said-${part}` });

/** @param {string} part @param {string} textContent @param {() => void} onclick */
const button = (part, textContent, onclick) =>
  make("button", { type: "button", className: "pill main", textContent, onclick }, { part });

/** @param {string} textContent @param {Element} content */
function folded(textContent, content) {
  const made = make("details");
  made.append(make("summary", { textContent }), content);
  return made;
}

/**
 * What a patch that is written out is called in a few words; the last is the one that is followed.
 * @param {Explained} state
 * @param {number} token
 * @param {number} place
 */
function tokenName({ explanation, token: followed }, token, place) {
  if (token === followed) return `${place + 1} itself`;
  const name = patchName(explanation.patchOf(token) ?? 0, explanation.grid);
  return `${place + 1} ${name.replace("the patch in ", "").replace("column", "col.")}`;
}
