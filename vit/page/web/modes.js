// The modes, a row for each: what its tab says, and the file that is loaded when it is opened. The first is the page.

/** @import { Panel } from "./dom.js" */
/**
 * @typedef {object} Mode  What a file in modes/ exports as `mode`.
 * @property {Record<string, Panel[]>} places  its panels, by the place of layout.js where they stand
 * @property {string[]} [takes]  the places whose other panels are hidden meanwhile
 */

/** @type {Record<string, { title: string, load?: () => Promise<{ mode: Mode }> }>} */
export const MODES = {
  look: { title: "Look" },
  tour: { title: "How it works", load: () => import("./modes/tour.js") },
  "what-if": { title: "What if", load: () => import("./modes/what-if.js") },
  curves: { title: "Which map is right?", load: () => import("./modes/curves.js") },
};

export const MODE_NAMES = Object.keys(MODES);
