// What the tour draws over the stage: in place of the map, or marks on it.

import { heatTile } from "../draw/heat.js";
import { drawGrid, outline } from "../draw/marks.js";
import { boxOn, patchBox, photosOf, viewOf } from "../draw/photo.js";
import { coloursOf } from "../draw/picture.js";

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
    outline(context, [left, top, columns * cell, rows * cell], FOLLOWED, ratio);
  },

  position({ context, state, trace, box, patch, ratio }) {
    if (!trace) return;
    const values = /** @type {Float32Array} */ (trace.tensors.similarity.data);
    heat(context, state, values, box);
    drawGrid(context, box, state.explanation.grid, ratio);
    outline(context, patchBox(patch, box, state.explanation.grid), FOLLOWED, ratio);
  },

  scores({ context, state: { explanation }, trace, box, ratio }) {
    if (!trace) return;
    for (const [place, token] of trace.about.listed.entries()) {
      const patch = explanation.patchOf(token);
      if (patch === null) continue;
      const [x, y, width, height] = patchBox(patch, box, explanation.grid);
      outline(context, [x, y, width, height], FOLLOWED, ratio);
      label(context, String(place + 1), x + width / 2, y + height / 2, ratio);
    }
  },

  sum: (scene) => SCENES.scores(scene),

  distance({ context, state: { explanation, dark }, figures, ratio }) {
    const { canvas } = context;
    const [ground, ink, line] = dark ? ["#101218", "#e5e7eb", "#3f4550"] : ["#fafaf9", "#1f2937", "#d6d3d1"];
    context.fillStyle = ground;
    context.fillRect(0, 0, canvas.width, canvas.height);
    if (!figures) return;
    const { data, shape } = figures.tensors.distance;
    const [layers, heads] = shape;
    const [left, right, top, bottom] = [64 * ratio, canvas.width - 24 * ratio, 64 * ratio, canvas.height - 60 * ratio];
    const highest = explanation.sizes.patch * Math.hypot(...explanation.grid) * 0.75;
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

  sinks({ context, state, figures, box, ratio }) {
    if (!figures) return;
    const { layer, explanation } = state;
    const { data } = figures.tensors.norms;
    const values = /** @type {Float32Array} */ (
      data.subarray(layer * explanation.patches, (layer + 1) * explanation.patches)
    );
    heat(context, state, values, box);
    drawGrid(context, box, explanation.grid, ratio);
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
 * @param {CanvasRenderingContext2D} context
 * @param {Explained} state
 * @param {Float32Array} values
 * @param {Box} box
 */
function heat(context, state, values, [left, top, right, bottom]) {
  const scale = /** @type {[number, number]} */ ([Math.min(...values), Math.max(...values)]);
  const tile = heatTile(values, state.explanation.grid, scale, { colours: coloursOf(state), smooth: false });
  context.imageSmoothingEnabled = false;
  context.drawImage(tile, left, top, right - left, bottom - top);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {string} text
 * @param {number} x
 * @param {number} y
 * @param {number} ratio
 */
function label(context, text, x, y, ratio) {
  context.font = `bold ${15 * ratio}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.lineWidth = 4 * ratio;
  context.strokeStyle = "rgba(0, 0, 0, 0.85)";
  context.strokeText(text, x, y);
  context.fillStyle = FOLLOWED;
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
