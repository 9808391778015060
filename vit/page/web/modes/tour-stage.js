// What the tour draws over the stage: in place of the map, or marks on it.

import { heatTile } from "../draw/heat.js";
import { drawGrid, outline } from "../draw/marks.js";
import { boxOn, patchBox, photosOf, viewOf } from "../draw/photo.js";
import { coloursOf, drawMap, small, thumbnail } from "../draw/picture.js";
import { look } from "./what-if-shown.js";

/** @import { Explained } from "../data/shown.js" */
/** @import { File } from "../data/safetensors.js" */
/** @import { Box } from "../draw/overlays.js" */
/**
 * @typedef {object} Scene
 * @property {CanvasRenderingContext2D} context
 * @property {Explained} state
 * @property {number} patch  that is followed
 * @property {File | null} figures
 * @property {File | null} trace
 * @property {number} ratio
 * @property {Box} box  what the model saw
 * @property {ReturnType<typeof photosOf>} photos
 */

const FOLLOWED = "#ffd60a";
const LETTERS = { x: "#fdba74", p: "#f0abfc", q: "#93c5fd", k: "#fca5a5" }; // as in the text, on dark
const GAP = 0.16; // of a patch, between patches that are pulled apart

/** @type {Record<string, (scene: Scene) => void>} */
export const SCENES = {
  question({ context, state: { explanation, dark }, ratio }) {
    const { canvas } = context;
    context.fillStyle = dark ? "#101218" : "#eeeeec";
    context.fillRect(0, 0, canvas.width, canvas.height);
    const { size, box, picture } = explanation;
    const times = Math.min(canvas.width / size[0], canvas.height / size[1]);
    const [width, height] = [size[0] * times, size[1] * times];
    const [left, top] = [(canvas.width - width) / 2, (canvas.height - height) / 2];
    context.drawImage(picture, left, top, width, height);
    const [x, y, right, bottom] = boxOn(box, [0, 0, size[0], size[1]], width, height);
    context.fillStyle = "rgba(10, 12, 16, 0.6)";
    context.beginPath();
    context.rect(left, top, width, height);
    context.rect(left + x, top + y, right - x, bottom - y);
    context.fill("evenodd");
    outline(context, [left + x, top + y, right - x, bottom - y], FOLLOWED, ratio);
  },

  patches({ context, state: { explanation, dark }, photos, box, patch, ratio }) {
    const { grid, patches } = explanation;
    context.fillStyle = dark ? "#101218" : "#eeeeec";
    context.fillRect(0, 0, context.canvas.width, context.canvas.height);
    for (let each = 0; each < patches; each++) {
      const [x, y, width, height] = patchBox(each, box, grid);
      const [across, down] = [width * (1 - GAP), height * (1 - GAP)];
      const [left, top] = [x + (width - across) / 2, y + (height - down) / 2];
      context.drawImage(photos.colour, x, y, width, height, left, top, across, down);
      if (each === patch) outline(context, [left, top, across, down], FOLLOWED, ratio);
    }
  },

  embedding({ context, trace, photos, ratio, box, patch, state: { explanation, dark } }) {
    const { canvas } = context;
    context.drawImage(dark ? photos.dim : photos.pale, 0, 0);
    const place = patchBox(patch, box, explanation.grid);
    context.drawImage(photos.colour, ...place, ...place);
    outline(context, place, FOLLOWED, ratio);
    if (!trace) return;
    const { data, shape } = trace.tensors.seen;
    const [rows, columns] = shape;
    const side = Math.min(canvas.width, canvas.height) * 0.62;
    const cell = side / Math.max(rows, columns);
    const right = place[0] + place[2] / 2 < canvas.width / 2; // the picture is where the patch is not
    const left = right ? canvas.width - side - 12 * ratio : 12 * ratio;
    const top = Math.min(canvas.height - side - 12 * ratio, Math.max(46 * ratio, place[1] - side / 2));
    for (let at = 0; at < rows * columns; at++) {
      context.fillStyle = `rgb(${data[at * 3]}, ${data[at * 3 + 1]}, ${data[at * 3 + 2]})`;
      const [row, column] = [Math.floor(at / columns), at % columns];
      context.fillRect(left + column * cell, top + row * cell, cell - ratio * 0.7, cell - ratio * 0.7);
    }
    outline(context, [left, top, columns * cell, rows * cell], LETTERS.x, ratio);
    label(context, "x", [left + 16 * ratio, top + 18 * ratio], LETTERS.x, ratio);
  },

  position({ context, state, trace, box, patch, ratio }) {
    if (!trace) return;
    const values = /** @type {Float32Array} */ (trace.tensors.similarity.data);
    heat(context, state, values, box);
    drawGrid(context, box, state.explanation.grid, ratio);
    outline(context, patchBox(patch, box, state.explanation.grid), LETTERS.p, ratio);
  },

  scores({ context, state: { explanation }, trace, box, ratio }) {
    if (!trace) return;
    const { listed } = trace.about;
    for (const [place, token] of listed.entries()) {
      const [x, y, width, height] = patchBox(explanation.patchOf(token) ?? 0, box, explanation.grid);
      const [text, colour] = place === listed.length - 1 ? ["q", LETTERS.q] : [String(place + 1), LETTERS.k];
      outline(context, [x, y, width, height], colour, ratio);
      label(context, text, [x + width / 2, y + height / 2], colour, ratio);
    }
  },

  sum({ context, state, trace, patch, ratio }) {
    const { explanation, head, dark } = state;
    context.fillStyle = dark ? "#101218" : "#eeeeec";
    context.fillRect(0, 0, context.canvas.width, context.canvas.height);
    if (!trace) return;
    const { shape, data } = trace.tensors.heads;
    const ready = small(explanation, Math.max(context.canvas.width, context.canvas.height) / 2);
    for (const [place, [left, top, width, height]] of beside(context, shape[0], ready.width / ready.height).entries()) {
      const values = /** @type {Float32Array} */ (data.subarray(place * shape[1], (place + 1) * shape[1]));
      context.drawImage(thumbnail(ready, state, values), left, top, width, height);
      const box = /** @type {Box} */ ([left, top, left + width, top + height]);
      outline(context, patchBox(patch, box, explanation.grid), LETTERS.q, ratio);
      label(context, `head ${place + 1}`, [left + 34 * ratio, top + height - 16 * ratio], FOLLOWED, ratio);
      if (place === head) outline(context, [left, top, width, height], FOLLOWED, ratio);
    }
  },

  residual: (scene) => ofEach(scene, "steps"),

  mlp: (scene) => ofEach(scene, "neuron"),

  layers({ context, state, photos, box }) {
    drawMap(context, photos, box, state, look(state, state.explanation, state.layer));
  },

  answer: (scene) => SCENES.layers(scene),

  distance({ context, state: { dark }, figures, ratio }) {
    const { canvas } = context;
    const [ground, ink, line] = dark ? ["#101218", "#e5e7eb", "#3f4550"] : ["#fafaf9", "#1f2937", "#d6d3d1"];
    context.fillStyle = ground;
    context.fillRect(0, 0, canvas.width, canvas.height);
    if (!figures) return;
    const { data, shape } = figures.tensors.distance;
    const [layers, heads] = shape;
    const [left, right, top, bottom] = [64 * ratio, canvas.width - 24 * ratio, 64 * ratio, canvas.height - 60 * ratio];
    const highest = 40 * Math.ceil((1.05 * Math.max(...data)) / 40);
    const across = (/** @type {number} */ layer) => left + ((layer + 0.5) / layers) * (right - left);
    const down = (/** @type {number} */ pixels) => bottom - (pixels / highest) * (bottom - top);
    context.font = `${13 * ratio}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.strokeStyle = line;
    context.lineWidth = ratio;
    for (let pixels = 0; pixels <= highest; pixels += 40) {
      context.beginPath();
      context.moveTo(left, down(pixels));
      context.lineTo(right, down(pixels));
      context.stroke();
      context.fillStyle = ink;
      context.fillText(String(pixels), left - 22 * ratio, down(pixels) + 4 * ratio);
    }
    for (let layer = 0; layer < layers; layer++) {
      context.fillStyle = ink;
      context.fillText(String(layer + 1), across(layer), bottom + 22 * ratio);
      for (let head = 0; head < heads; head++) {
        context.fillStyle = dark ? "#fde047" : "#b45309";
        context.globalAlpha = 0.85;
        context.beginPath();
        context.arc(across(layer), down(data[layer * heads + head]), 6 * ratio, 0, 2 * Math.PI);
        context.fill();
        context.globalAlpha = 1;
      }
    }
    context.fillStyle = ink;
    context.fillText("layer", (left + right) / 2, bottom + 44 * ratio);
    context.save();
    context.translate(18 * ratio, (top + bottom) / 2);
    context.rotate(-Math.PI / 2);
    context.fillText("pixels, on average", 0, 0);
    context.restore();
  },

  sinks({ context, state, figures, ratio }) {
    const { layer, explanation, dark } = state;
    context.fillStyle = dark ? "#101218" : "#eeeeec";
    context.fillRect(0, 0, context.canvas.width, context.canvas.height);
    if (!figures) return;
    const { norms, norms_before } = figures.tensors;
    const both = [norms, ...(norms_before ? [norms_before] : [])].map(
      ({ data }) =>
        /** @type {Float32Array} */ (data.subarray(layer * explanation.patches, (layer + 1) * explanation.patches)),
    );
    const [rows, columns] = explanation.grid;
    const every = both.flatMap((values) => [...values]);
    const scale = /** @type {[number, number]} */ ([Math.min(...every), Math.max(...every)]);
    for (const [place, [left, top, width, height]] of beside(context, both.length, columns / rows).entries()) {
      const box = /** @type {Box} */ ([left, top, left + width, top + height]);
      heat(context, state, both[place], box, scale);
      drawGrid(context, box, explanation.grid, ratio);
      if (both.length > 1)
        label(context, place ? "without" : "with registers", [left + width / 2, top - 16 * ratio], FOLLOWED, ratio);
    }
  },

  without({ context, state: { explanation, dark }, photos, box, figures, ratio }) {
    context.drawImage(dark ? photos.dim : photos.pale, 0, 0);
    if (!figures) return;
    const place = patchBox(figures.about.patch, box, explanation.grid);
    context.drawImage(photos.colour, ...place, ...place);
    outline(context, place, FOLLOWED, ratio);
  },
};

/**
 * Places for pictures of a shape beside one another, as large as there is room: x, y, width, height.
 * @param {CanvasRenderingContext2D} context
 * @param {number} count
 * @param {number} shape  width over height
 */
function beside({ canvas }, count, shape) {
  const columns = Math.ceil(Math.sqrt(count));
  const rows = Math.ceil(count / columns);
  const [across, down] = [canvas.width / columns, canvas.height / rows];
  const width = Math.min(across, down * shape) * (count > 1 ? 1 - GAP / 4 : 1);
  const height = width / shape;
  return Array.from({ length: count }, (_, place) => {
    const [row, column] = [Math.floor(place / columns), place % columns];
    const at = [column * across + (across - width) / 2, row * down + (down - height) / 2];
    return /** @type {[number, number, number, number]} */ ([...at, width, height]);
  });
}

/**
 * A number of the trace for each patch, over the photo.
 * @param {Scene} scene
 * @param {string} name
 */
function ofEach({ context, state, trace, box, patch, ratio }, name) {
  if (!trace) return;
  heat(context, state, /** @type {Float32Array} */ (trace.tensors[name].data), box);
  drawGrid(context, box, state.explanation.grid, ratio);
  outline(context, patchBox(patch, box, state.explanation.grid), FOLLOWED, ratio);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Explained} state
 * @param {Float32Array} values
 * @param {Box} box
 * @param {[number, number]} scale
 */
function heat(context, state, values, [left, top, right, bottom], scale = [Math.min(...values), Math.max(...values)]) {
  const tile = heatTile(values, state.explanation.grid, scale, { colours: coloursOf(state), smooth: false });
  context.imageSmoothingEnabled = false;
  context.drawImage(tile, left, top, right - left, bottom - top);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {string} text
 * @param {[x: number, y: number]} middle
 * @param {string} colour
 * @param {number} ratio
 */
function label(context, text, [x, y], colour, ratio) {
  context.font = `bold ${15 * ratio}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.lineWidth = 4 * ratio;
  context.strokeStyle = "rgba(0, 0, 0, 0.85)";
  context.strokeText(text, x, y);
  context.fillStyle = colour;
  context.fillText(text, x, y);
}

/**
 * What every scene needs of the photo, on a canvas of this size.
 * @param {Explained["explanation"]} explanation
 * @param {boolean} whole
 * @param {number} width
 * @param {number} height
 */
export function sceneOf(explanation, whole, width, height) {
  const view = viewOf(explanation, whole);
  const { picture, size } = explanation;
  return { box: boxOn(explanation.box, view, width, height), photos: photosOf(picture, size, view, width, height) };
}
