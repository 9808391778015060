// Which panel stands where, and the style that they share.

import { answer } from "./panels/answer.js";
import { exporting } from "./panels/export.js";
import { heads } from "./panels/heads.js";
import { keys } from "./panels/keys.js";
import { layers } from "./panels/layers.js";
import { lens } from "./panels/lens.js";
import { methods } from "./panels/methods.js";
import { notes } from "./panels/notes.js";
import { patch } from "./panels/patch.js";
import { query } from "./panels/query.js";
import { scale } from "./panels/scale.js";
import { settings } from "./panels/settings.js";
import { sheet } from "./panels/sheet.js";
import { spoken } from "./panels/spoken.js";
import { stage } from "./panels/stage.js";

/** @import { Panel } from "./dom.js" */

/** @type {Panel} */
export const frame = {
  markup: `
    <p class="empty" data-part="empty">
      Drop a photo anywhere, paste, choose or take one, or click an example:
      see what the model predicts, and where it looks, layer by layer and head by head.
    </p>
    <div class="body" data-part="body" hidden>
      <div class="bar" data-place="bar"></div>
      <div class="columns">
        <div class="left" data-place="left"></div>
        <div class="side" data-place="side"></div>
      </div>
      <div data-place="below"></div>
    </div>
    <div data-place="unseen"></div>`,

  style: `
    /* mixed with what is light in light mode and dark in dark mode */
    --accent: color-mix(in srgb, var(--primary-500) 80%, var(--body-text-color));
    --chosen: color-mix(in srgb, var(--primary-500) 22%, var(--background-fill-primary));
    --bar: color-mix(in srgb, var(--primary-500) 30%, var(--background-fill-primary));
    --track: color-mix(in srgb, var(--body-text-color) 30%, var(--background-fill-primary));
    color: var(--body-text-color); line-height: 1.4; scroll-margin-top: 8px; container-type: inline-size;
    [hidden] { display: none !important; }
    p { margin: 0; }
    h3 { overflow-wrap: anywhere; margin: 0 0 6px; font-size: 14px; font-weight: 600; color: var(--body-text-color); }
    ol, ul { list-style: none; margin: 4px 0 0; padding: 0; display: grid; gap: 4px; }
    li { margin: 0; padding: 0; }
    button { margin: 0; font-weight: 400; font-family: inherit; }
    fieldset { border: 0; margin: 0; padding: 0; min-width: 0; }
    fieldset:disabled { opacity: 0.45; }
    button[aria-disabled="true"] { opacity: 0.5; }

    .empty { max-width: 46ch; margin: 18vh auto; text-align: center; font-size: 17px; color: var(--body-text-color-subdued); }
    .note, .keys { font-size: 13px; color: var(--body-text-color-subdued); margin-top: 4px; }
    .keys { margin-top: 14px; }
    .bar { display: flex; flex-wrap: wrap; gap: 8px 20px; margin-bottom: 12px; }
    .columns { display: grid; grid-template-columns: minmax(0, 1fr) 270px; gap: 20px; align-items: start; }
    .side { display: grid; grid-template-columns: minmax(0, 1fr); gap: 18px; }

    .choices { display: flex; flex-wrap: wrap; align-items: center; gap: 4px; }
    .choices > div { display: flex; flex-wrap: wrap; gap: 4px; }
    .choices legend { float: left; padding: 0; margin-right: 8px; font-size: 14px; font-weight: 600; line-height: 30px; }
    .choices label { position: relative; cursor: pointer; }
    .choices input { position: absolute; inset: 0; opacity: 0; margin: 0; width: 100%; height: 100%; cursor: pointer; }
    .choices span, .chips button, .away button {
      display: inline-block; min-width: 30px; padding: 4px 10px; text-align: center; font-size: 14px; line-height: 20px;
      border: 1px solid var(--border-color-primary); border-radius: 7px; background: var(--background-fill-primary); color: var(--body-text-color);
    }
    .chips button, .away button { cursor: pointer; }
    .choices label:hover span, button:hover:not(:disabled) { border-color: var(--accent); }
    .choices input:checked + span, .chips button[aria-pressed="true"] { background: var(--chosen); border-color: var(--accent); color: var(--body-text-color); }
    .choices input:focus-visible + span, button:focus-visible, canvas:focus-visible,
    input[type="range"]:focus-visible, input[type="checkbox"]:focus-visible, input[type="text"]:focus-visible {
      outline: 3px solid var(--accent); outline-offset: 2px;
    }

    @container (max-width: 760px) {
      .columns { display: flex; flex-direction: column; gap: 10px; align-items: stretch; }
      .left, .side { display: contents; }
      .note { margin: 0; }
      .empty { margin: 6vh auto; }
      .choices span, .chips button, .away button { padding: 8px 12px; }
    }
    @media (forced-colors: active) {
      .choices input:checked + span, button[aria-pressed="true"] { outline: 3px solid Highlight; }
    }`,

  start({ part, root, store }) {
    store.show(({ explanation, maps }) => {
      part("empty").hidden = !!explanation;
      part("body").hidden = !explanation;
      if (explanation) Object.assign(root.dataset, { photo: explanation.name, maps: Object.keys(maps).length });
    });
  },
};

/** @type {Record<string, Panel[]>} */
export const PLACES = {
  bar: [methods, heads],
  left: [stage, scale, layers, lens, notes, settings],
  side: [answer, query, patch],
  below: [sheet, exporting, keys],
  unseen: [spoken],
};
