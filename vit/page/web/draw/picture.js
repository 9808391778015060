// The photo with a map of the state over it, at any size: on the stage, in a thumbnail, in a figure.

import { lightOf, maps, overlay, scaleOf } from "../data/shown.js";
import { OVERLAYS } from "./overlays.js";
import { boxOn, contextOf, photosOf, viewOf } from "./photo.js";

/** @import { Explained } from "../data/shown.js" */
/** @import { Box, Context } from "./overlays.js" */
/** @import { Photos } from "./photo.js" */

export const coloursOf = (/** @type {Explained} */ { explanation }) =>
  /** @type {Uint8Array} */ (explanation.tensors.colours.data);

/**
 * @param {Context} context
 * @param {Photos} photos
 * @param {Box} box
 * @param {Explained} state
 * @param {Float32Array | null} values  null while they are on their way: the photo alone
 * @param {{ strength?: number, smooth?: boolean }} [how]
 */
export function drawMap(context, photos, box, state, values, { strength, smooth = state.smooth } = {}) {
  if (!values) return context.drawImage(photos.colour, 0, 0);
  const look = {
    colours: coloursOf(state),
    signed: maps(state)?.signed,
    smooth,
    dark: state.dark,
    opacity: state.opacity / 100,
    strength,
  };
  const layer = {
    values,
    grid: state.explanation.grid,
    scale: scaleOf(state, values),
    light: lightOf(state, values),
    look,
  };
  OVERLAYS[overlay(state)].draw(context, photos, box, layer);
}

/** The photos for small pictures of what the model saw, and where in them that is. */
export function small(/** @type {Explained["explanation"]} */ explanation, /** @type {number} */ side) {
  const [left, top, right, bottom] = explanation.box;
  const times = side / Math.max(right - left, bottom - top);
  const width = Math.max(1, Math.round((right - left) * times));
  const height = Math.max(1, Math.round((bottom - top) * times));
  const view = viewOf(explanation, false);
  const photos = photosOf(explanation.picture, explanation.size, view, width, height);
  return { photos, box: boxOn(explanation.box, view, width, height), width, height };
}

/**
 * A small picture of a map.
 * @param {ReturnType<typeof small>} small
 * @param {Explained} state
 * @param {Float32Array} values
 */
export function thumbnail({ photos, box, width, height }, state, values) {
  const canvas = new OffscreenCanvas(width, height);
  drawMap(contextOf(canvas), photos, box, state, values, { smooth: state.smooth });
  return canvas;
}
