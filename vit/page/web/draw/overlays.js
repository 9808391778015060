// The ways to lay a map over a photo, a row for each.

import { contours } from "./contours.js";
import { heat } from "./heat.js";
import { spotlight } from "./spotlight.js";
import { tiles } from "./tiles.js";

/** @import { Scale } from "../data/maps.js" */
/** @import { Photos } from "./photo.js" */
/** @typedef {[left: number, top: number, right: number, bottom: number]} Box */
/** @typedef {CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D} Context */
/**
 * @typedef {object} Look  How it is drawn.
 * @property {Uint8Array} colours
 * @property {boolean} [signed]
 * @property {boolean} smooth
 * @property {boolean} dark  or light mode
 * @property {number} opacity
 * @property {number} [strength]  how far the lights have gone down, all the way by default
 */
/** @typedef {{ values: Float32Array, grid: [number, number], scale: Scale, light: Scale, look: Look }} Layer */
/**
 * @typedef {object} Overlay
 * @property {string} title
 * @property {string} about  how to read it
 * @property {(context: Context, photos: Photos, box: Box, layer: Layer) => void} draw  all of the canvas
 */

/** @type {Record<string, Overlay>} */
export const OVERLAYS = { spotlight, tiles, contours, heat };
