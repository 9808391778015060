// Pictures to keep: the view, and the map in all layers, each with its legend below.

import {
  column,
  ends,
  layer,
  maps,
  method,
  ofWholeModel,
  overlay,
  scaleOf,
  title,
  titleOfAll,
  values,
} from "../data/shown.js";
import { layerName } from "../data/words.js";
import { colourBar } from "./heat.js";
import { drawMarks, marksOf } from "./marks.js";
import { OVERLAYS } from "./overlays.js";
import { boxOn, contextOf, photosOf, viewOf } from "./photo.js";
import { coloursOf, drawMap } from "./picture.js";

/** @import { Scale } from "../data/maps.js" */
/** @import { Explained } from "../data/shown.js" */

const FONT = "13px system-ui, sans-serif";
const LINE = 18;
const NARROWEST = 480;

/** What is shown at the photo's own size, or at the stage's if that is larger; null while its map is on its way. */
export function viewFigure(/** @type {Explained} */ state) {
  const shown = values(state);
  if (!shown) return null;
  const { picture, size, model } = state.explanation;
  const [left, top, right, bottom] = viewOf(state.explanation, state.whole);
  const width = Math.max(1, Math.round(Math.max(((right - left) * picture.width) / size[0], state.across)));
  const height = Math.max(1, Math.round((width * (bottom - top)) / (right - left)));
  const words = lines(`${title(state)} · ${model}`, Math.max(width, NARROWEST));
  const context = paper(Math.max(width, NARROWEST), height, words);
  context.drawImage(photoWithMap(state, width, height, shown, layer(state)), 0, 0);
  legend(context, height, words, state, scaleOf(state, shown));
  return context.canvas;
}

/** The current map in all layers; null while it is on its way. */
export function sheetFigure(/** @type {Explained} */ state) {
  const found = maps(state);
  if (!found) return null;
  const [left, top, right, bottom] = viewOf(state.explanation, state.whole);
  const [wide, tall] = [right - left, bottom - top];
  const times = 240 / Math.max(wide, tall);
  const [width, height] = [Math.max(1, Math.round(wide * times)), Math.max(1, Math.round(tall * times))];
  const [head, gap] = [24, 8];
  const count = found.layers.length;
  const columns = [4, 3, 5].find((number) => count % number === 0) ?? Math.min(4, count);
  const cell = Math.max(width, 170) + gap;
  const across = columns * cell + gap;
  const down = Math.ceil(count / columns) * (height + head + gap);
  const words = lines(`${titleOfAll(state)} · ${state.explanation.model}`, across);
  const context = paper(across, down, words);
  const own = state.scale === "own";
  const which = column(state);
  for (const [number, columnsOf] of found.layers.entries()) {
    const shown = columnsOf[which];
    const scale = scaleOf(state, shown);
    const x = gap + (number % columns) * cell;
    const y = Math.floor(number / columns) * (height + head + gap) + head;
    const [name, of] = ofWholeModel(state) ? ["whole model", layer(state)] : [layerName(number), number];
    write(context, own && measured(state) ? `${name}   ${ends(state, scale).join(" – ")}` : name, x, y - 6);
    context.drawImage(photoWithMap(state, width, height, shown, of), x, y);
  }
  legend(context, down, words, state, own ? null : scaleOf(state, found.layers[0][which]));
  return context.canvas;
}

/** A file name that says what is in it. */
export function figureName(/** @type {Explained} */ state, /** @type {string} */ what) {
  return `${state.explanation.name}-${method(state).name}${what && `-${what}`}.png`.replaceAll(/[^\w.-]+/g, "_");
}

/**
 * @param {Explained} state
 * @param {number} width
 * @param {number} height
 * @param {Float32Array} shown
 * @param {number} of  the layer
 */
function photoWithMap(state, width, height, shown, of) {
  const { explanation } = state;
  const view = viewOf(explanation, state.whole);
  const box = boxOn(explanation.box, view, width, height);
  const tile = new OffscreenCanvas(width, height);
  const context = contextOf(tile);
  drawMap(context, photosOf(explanation.picture, explanation.size, view, width, height), box, state, shown);
  drawMarks(context, box, explanation.grid, { ...marksOf(state, of), lines: state.grid && width > 400 }, 1);
  return tile;
}

/** Whether colours stand for numbers. */
const measured = (/** @type {Explained} */ state) => overlay(state) === "heat";

/**
 * @param {number} width
 * @param {number} height  of what is drawn; below it is room for the legend
 * @param {string[]} words
 */
function paper(width, height, words) {
  const context = new OffscreenCanvas(width, height + 48 + words.length * LINE).getContext("2d");
  if (!context) throw new Error("The browser has no room for the picture: make it smaller.");
  context.fillStyle = "white";
  context.fillRect(0, 0, context.canvas.width, context.canvas.height);
  return context;
}

/**
 * @param {OffscreenCanvasRenderingContext2D} context
 * @param {number} top
 * @param {string[]} words
 * @param {Explained} state
 * @param {Scale | null} scale  null where each map has its own
 */
function legend(context, top, words, state, scale) {
  for (const [line, text] of words.entries()) write(context, text, 8, top + 20 + line * LINE);
  const y = top + 12 + words.length * LINE;
  if (!measured(state)) return write(context, OVERLAYS[overlay(state)].about, 8, y + 11);
  const bar = new OffscreenCanvas(256, 1);
  bar.getContext("2d")?.putImageData(colourBar(coloursOf(state), maps(state)?.signed), 0, 0);
  context.drawImage(bar, 8, y, 200, 12);
  write(context, (scale ? ends(state, scale) : ["each map's lowest", "highest"]).join(" – "), 218, y + 11);
}

/**
 * @param {OffscreenCanvasRenderingContext2D} context
 * @param {string} text
 * @param {number} x
 * @param {number} y
 */
function write(context, text, x, y) {
  context.fillStyle = "black";
  context.font = FONT;
  context.fillText(text, x, y);
}

/** A text as lines of at most this width. */
function lines(/** @type {string} */ text, /** @type {number} */ width) {
  const context = /** @type {OffscreenCanvasRenderingContext2D} */ (new OffscreenCanvas(1, 1).getContext("2d"));
  context.font = FONT;
  /** @type {string[]} */
  const made = [];
  for (const word of text.split(" ")) {
    const longer = made.length ? `${made.at(-1)} ${word}` : word;
    if (made.length && context.measureText(longer).width <= width - 16) made[made.length - 1] = longer;
    else made.push(word);
  }
  return made;
}
