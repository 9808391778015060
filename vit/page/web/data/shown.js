// What the state shows: its maps, the one of them that is drawn, and what to call it.

import { derive } from "./derive.js";
import { lightScale } from "./look.js";
import { attentionMaps, byLayer, classMaps, range, withoutOutliers } from "./maps.js";
import { amount, capital, headName, layerName, ordinal, patchName, plain } from "./words.js";

/** @import { Direction, Explanation, Head, Method } from "./explanation.js" */
/** @import { Maps, Scale } from "./maps.js" */
/** @import { Tensors } from "./safetensors.js" */
/** @import { FileData } from "../ask.js" */
/**
 * @typedef {object} State  Of one slot: all that the page knows. The first part are the settings of view.js.
 * @property {string} mode
 * @property {string} at  where in the mode one is, in words of its own
 * @property {string} map  a method's name
 * @property {number} layer
 * @property {Head} head
 * @property {number} token  whose look: the class token, or a pinned patch's
 * @property {Direction} direction
 * @property {number} chosen  a class, by its rank among the predictions
 * @property {number | null} against  another class, for the difference
 * @property {number} opacity
 * @property {boolean} grid
 * @property {boolean} smooth
 * @property {boolean} leaveOut  sinks: patches of far more than the usual norm
 * @property {boolean} whole  the whole photo, not only what the model saw
 * @property {"own" | "shared"} scale
 * @property {string} overlay
 *
 * @property {string} slot
 * @property {Partial<State> | null} left  the map that a patch was clicked on, where that was another's
 * @property {string | null} wanted  the address of the explanation that is to be shown
 * @property {Explanation | null} explanation  null before the first photo
 * @property {FileData | null} photo  its file, on the server
 * @property {Coming | null} coming  the photo that was chosen, while its explanation is on its way
 * @property {Tensors | null} attention  all of it, which comes last
 * @property {Tensors} maps  those of other methods
 * @property {Map<number, Tensors>} looks  of single tokens, before the attention is here or where it is too large
 * @property {URLSearchParams | null} linked  what a link asks for, until its photo is here
 * @property {Record<string, any>} told  what modes asked, by question
 * @property {number | null} hovered  a patch
 * @property {number} across  pixels of the stage
 * @property {number | null} step  of the pipeline, where a mode is at one
 * @property {boolean} playing
 * @property {number | null} story  how far the opening has come, from 0 to 1; null when it is over
 * @property {boolean} presenting
 * @property {boolean} unfolded  all layers and heads
 * @property {boolean} dark
 * @property {string} task  a line for the one who opens the link
 * @property {boolean} photoMissing  the link was of a photo that is not in it
 * @property {object | null} again  a photo of one's own that was shown before the page was loaded again
 * @property {Model[]} models  those that can be chosen
 * @property {Link | null} following  what a link names, on its way
 * @property {Loading | null} loading  a model, on its way
 * @property {boolean} saving  arrays are being made
 * @property {string} failed  a sentence
 * @property {string} said  to a screen reader, at once
 */
/** @typedef {State & { explanation: Explanation }} Explained */
/** @typedef {{ name: string, src: string }} Coming  the example's name, or the file's; "" the last photo of one's own, again */
/** @typedef {{ source: string, name: string, size: string, knows: string, classes: number, look_for: string, any?: boolean }} Model */
/** @typedef {{ source: string, share: number | null, text: string }} Loading */
/** @typedef {{ example: string | null, model: string | null }} Link */

/** @param {Explained} state */
export const method = (state) =>
  /** @type {Method} */ (state.explanation.methods.find(({ name }) => name === state.map));

/** The method whose maps any token can be asked for. */
export const tokenMethod = (/** @type {Explanation} */ { methods }) =>
  /** @type {Method} */ (methods.find(({ of_token }) => of_token));

/** The method of the current map if that is a class's, else the first that is. */
export const classMethod = (/** @type {Explained} */ state) =>
  byClass(state) ? method(state) : state.explanation.methods.find(({ columns }) => columns === "classes");

export const byClass = (/** @type {Explained} */ state) => method(state).columns === "classes";

/** The pinned patch, or null. */
export const pinned = (/** @type {Explained} */ { explanation, token }) => explanation.patchOf(token);

/** The maps of the current view, without outliers where they are to be left out; null while they are on their way. */
export const maps = derive((/** @type {Explained} */ state) => {
  const found = everyMap(state);
  return found && state.leaveOut ? withoutOutliers(found, state.explanation) : found;
});

/**
 * @param {Explained} state
 * @returns {Maps | null}
 */
function everyMap(state) {
  const { explanation } = state;
  const { name, of_token, columns } = method(state);
  if (of_token) return attentionMaps(explanation, state.attention, state.looks, state.token, state.direction);
  const here = state.maps; // read here, so that attention does not depend on it
  if (columns === "heads") return here[name] ? { columns: explanation.columns, layers: byLayer(here[name]) } : null;
  const labels = explanation.predictions.map(({ label }) => plain(label));
  const tensors = labels.map((_, rank) => here[`${name} ${rank}`]);
  return classMaps(labels, tensors, state.chosen, state.against);
}

/** A map that is of the whole model, and of no layer of its own. */
export const ofWholeModel = (/** @type {Explained} */ state) =>
  maps(state)?.layers.length === 1 && state.explanation.layers > 1;

/** The layer that the map belongs to: the last where it is of the whole model. */
export const layer = (/** @type {Explained} */ state) =>
  ofWholeModel(state) ? state.explanation.layers - 1 : state.layer;

/** The place of the current head or class in the columns of the maps. */
export function column(/** @type {Explained} */ state) {
  const found = maps(state);
  if (!found) return -1;
  if (byClass(state)) return found.ranks ? found.ranks.indexOf(state.chosen) : 0;
  return found.columns.indexOf(state.head);
}

/** The values of the map that is drawn. */
export const values = (/** @type {Explained} */ state) =>
  maps(state)?.layers[ofWholeModel(state) ? 0 : state.layer][column(state)] ?? null;

const shared = derive((/** @type {Explained} */ state) => {
  const found = maps(state);
  return found && range(found.layers.flat(), found.signed);
});

/**
 * The colour scale of a map of the current view.
 * @param {Explained} state
 * @param {Float32Array} shown
 * @returns {Scale}
 */
export function scaleOf(state, shown) {
  const all = state.scale === "shared" ? shared(state) : null;
  return all ?? range([shown], maps(state)?.signed);
}

const sharedLight = derive((/** @type {Explained} */ state) => {
  const every =
    maps(state)
      ?.layers.flat()
      .map((values) => [...values]) ?? [];
  return every.length ? lightScale(new Float32Array(every.flat())) : null;
});

/**
 * The values that are dark, and that are light.
 * @param {Explained} state
 * @param {Float32Array} shown
 */
export const lightOf = (state, shown) => (state.scale === "shared" ? sharedLight(state) : null) ?? lightScale(shown);

/** The overlay in use: a difference has two colours, which light has not. */
export const overlay = (/** @type {Explained} */ state) => (maps(state)?.signed ? "heat" : state.overlay);

/** The lowest and the highest value of the scale, as text. */
export const ends = (/** @type {Explained} */ state, /** @type {Scale} */ scale) =>
  scale.map((value) => amount(value, method(state).unit));

/** What the map is, in which layer, of which head. */
export const title = (/** @type {Explained} */ state) =>
  [subject(state), ...(ofWholeModel(state) ? [] : [layerName(state.layer)]), ...headOf(state)].join(", ");

/** The same for all its layers. */
export const titleOfAll = (/** @type {Explained} */ state) => [subject(state), ...headOf(state)].join(", ");

const headOf = (/** @type {Explained} */ state) => (byClass(state) ? [] : [headName(state.head)]);

/** What the map is. */
export function subject(/** @type {Explained} */ state) {
  const { explanation, against, direction } = state;
  const label = (/** @type {number} */ rank) => plain(explanation.predictions[rank].label);
  const { caption, of_token } = method(state);
  if (of_token) {
    const patch = pinned(state);
    const who = patch === null ? "the class token" : patchName(patch, explanation.grid);
    return direction === "looks_at" ? `What ${who} looks at` : `What looks at ${who}`;
  }
  if (!byClass(state)) return capital(caption);
  if (against !== null) return capital(`${label(state.chosen)} (red) against ${label(against)} (blue)`);
  return capital(caption.replace("{class}", () => label(state.chosen)));
}

/** The patch under the pointer, else the pinned one. */
export const patch = (/** @type {Explained} */ state) => state.hovered ?? pinned(state);

/** How much of the map is at a patch. */
export function patchShare(/** @type {Explained} */ state, /** @type {number} */ asked) {
  const shown = values(state);
  if (!shown) return "";
  if (state.leaveOut && state.explanation.outliers(layer(state))[asked]) return "a sink, left out";
  return amount(shown[asked], method(state).unit);
}

/** What to say of the patch. */
export function patchText(/** @type {Explained} */ state) {
  const asked = patch(state);
  if (asked === null) return "";
  const shown = values(state);
  const name = capital(patchName(asked, state.explanation.grid));
  return shown ? `${name}: ${place(asked, shown, state)}.` : `${name}.`;
}

/**
 * @param {number} asked
 * @param {Float32Array} shown
 * @param {Explained} state
 */
function place(asked, shown, state) {
  const left = state.leaveOut ? state.explanation.outliers(layer(state)) : [];
  if (left[asked]) return patchShare(state, asked);
  const others = [...shown].filter((_, other) => !left[other]);
  const rank = others.filter((value) => value > shown[asked]).length + 1;
  return `${patchShare(state, asked)}, the ${rank === 1 ? "" : `${ordinal(rank)} `}highest of ${others.length}`;
}
