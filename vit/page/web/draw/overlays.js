// The ways to lay a map over a photo, a row for each.

import { heat } from "./heat.js";

/** @import { Scale } from "../data/maps.js" */
/** @import { Look } from "./heat.js" */
/** @import { Photos } from "./photo.js" */
/** @typedef {[left: number, top: number, right: number, bottom: number]} Box */
/** @typedef {CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D} Context */
/** @typedef {{ values: Float32Array, grid: [number, number], scale: Scale, look: Look, opacity: number }} Layer */
/**
 * @typedef {object} Overlay
 * @property {string} title
 * @property {(photos: Photos, box: Box, opacity: number) => OffscreenCanvas} under  the photo as it lies under any map
 * @property {(context: Context, box: Box, layer: Layer) => void} over  the map, on what the model saw
 */

/** @type {Record<string, Overlay>} */
export const OVERLAYS = { heat };
