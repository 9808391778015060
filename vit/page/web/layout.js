// Which panel stands where, and the style that they share.

import { answer } from "./panels/answer.js";
import { asks } from "./panels/asks.js";
import { bubble } from "./panels/bubble.js";
import { caveat } from "./panels/caveat.js";
import { columns } from "./panels/columns.js";
import { keys } from "./panels/keys.js";
import { layers } from "./panels/layers.js";
import { model } from "./panels/model.js";
import { modes } from "./panels/modes.js";
import { notices } from "./panels/notices.js";
import { overlays } from "./panels/overlays.js";
import { pipeline } from "./panels/pipeline.js";
import { sheet } from "./panels/sheet.js";
import { spoken } from "./panels/spoken.js";
import { stage } from "./panels/stage.js";
import { terms } from "./panels/terms.js";
import { tools } from "./panels/tools.js";
import { view } from "./panels/view.js";

/** @import { Panel } from "./dom.js" */

/** @type {Panel} */
export const frame = {
  markup: `
    <header class="top" data-place="top"><h1></h1></header>
    <div class="notices" data-place="notices"></div>
    <div class="photos" data-place="photos"></div>
    <div class="stage-area" data-place="stage"></div>
    <div class="columns-area" data-place="columns"></div>
    <div class="layers-area" data-place="layers"></div>
    <div class="side" data-place="side"></div>
    <div class="sheet-area" data-place="sheet"></div>
    <footer class="foot" data-place="foot"></footer>
    <div class="tools-area" data-place="tools"></div>
    <div data-place="unseen"></div>`,

  style: `
    /* mixed with what is light in light mode and dark in dark mode */
    --accent: color-mix(in srgb, var(--primary-500) 80%, var(--body-text-color));
    --chosen: color-mix(in srgb, var(--primary-500) 22%, var(--background-fill-primary));
    --bar: color-mix(in srgb, var(--primary-500) 30%, var(--background-fill-primary));
    --card: color-mix(in srgb, var(--body-text-color) 6%, var(--body-background-fill));
    --line: color-mix(in srgb, var(--body-text-color) 22%, var(--body-background-fill));
    --quiet: var(--body-text-color-subdued);
    --mark: #b45309; --mark-text: #92400e;
    .dark & { --mark: #ffd60a; --mark-text: #ffd60a; }
    --rail: 4.2em; --gap: 20px;
    --side: clamp(260px, min(max((100dvh - 64px - 15.4em - var(--said)) / 1.083, min(420px, 100dvh - 15.5em)), 100cqw - 640px), 1500px); /* in a low window the pipeline is scrolled to */
    --said: 0px; &:has(.notice:not([hidden], [data-part="loading"])) { --said: 3.6em; }
    font-size: clamp(15px, 0.55cqw + 0.35cqh + 5px, 21px);
    color: var(--body-text-color); line-height: 1.4;
    display: grid; column-gap: var(--gap); row-gap: 10px; justify-content: center; align-content: start;
    grid-template-columns: var(--rail) var(--side) auto minmax(300px, 30em);
    grid-template-rows: auto auto auto 1fr auto auto; /* a tall side makes room below the layers, not within the stage */
    grid-template-areas: "top top top top" "notices notices notices notices" "photos stage columns side" "photos layers layers side" "sheet sheet sheet sheet" "foot foot foot foot";
    position: relative; padding: 0 var(--gap); box-sizing: border-box;
    *, *::before { box-sizing: border-box; }
    [hidden] { display: none !important; }
    p, h1, h2, h3, ul, ol, li, fieldset { margin: 0; padding: 0; }
    ul, ol { list-style: none; }
    h1 { font-size: 1.15em; font-weight: 700; white-space: nowrap; color: var(--body-text-color); }
    h2 { color: var(--body-text-color); }
    /* as Gradio has them for text, for when it is not here yet */
    p { line-height: 1.625; } h1, h2, h3 { line-height: 1.3; } span { color: var(--body-text-color); }
    h3 { font-size: 0.85em; font-weight: 600; color: var(--body-text-color); }
    fieldset { border: 0; min-width: 0; }
    fieldset:disabled { opacity: 0.45; }
    button, input { font: inherit; color: inherit; margin: 0; }
    button { cursor: pointer; background: none; border: 0; padding: 0; }
    button[aria-disabled="true"] { opacity: 0.5; }

    /* widths of these lines are not the columns' */ --wider: min(0px, (100% - min(100cqw - 2 * var(--gap), 72em)) / 2); /* than the rest, where that is narrow */
    .top { grid-area: top; contain: inline-size; padding-right: 13.6em; margin-inline: var(--wider); } .tools-area { grid-area: top; justify-self: end; margin-right: var(--wider); } .notices { grid-area: notices; } .photos { grid-area: photos; }
    .stage-area { grid-area: stage; position: relative; } .columns-area { grid-area: columns; } .layers-area { grid-area: layers; }
    .side { grid-area: side; display: flex; flex-direction: column; gap: 14px; min-width: 0; }
    .sheet-area { grid-area: sheet; contain: inline-size; } .foot { grid-area: foot; contain: inline-size; }
    .top, .tools-area { display: flex; align-items: center; gap: 12px; min-height: 48px; }
    .tools-area { justify-content: end; gap: 7px; }
    .notices:not(:has(> :not([hidden]))) { display: none; }

    .pill { display: inline-flex; align-items: center; gap: 0.5em; padding: 0.35em 0.75em; border: 1px solid var(--line); border-radius: 99px; background: var(--body-background-fill); text-align: left; }
    .pill:hover { border-color: var(--accent); }
    .card { padding: 10px 14px; border-radius: 10px; background: var(--card); font-size: 0.9em; }
    .link { text-decoration: underline; text-underline-offset: 3px; text-align: left; }
    .link:hover { color: var(--mark-text); }
    .quiet { color: var(--quiet); }

    .thumb { display: block; padding: 0; border-radius: 8px; outline-offset: 2px; }
    .thumb canvas { display: block; width: 100%; border-radius: 7px; aspect-ratio: var(--shape, 1); background: var(--card); }
    .thumb[aria-pressed="true"] canvas { box-shadow: 0 0 0 2px var(--body-background-fill), 0 0 0 4.5px var(--mark); }
    .thumb span { display: block; margin-top: 4px; text-align: center; font-size: 0.75em; color: var(--quiet); white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
    .thumb[aria-pressed="true"] span { color: var(--body-text-color); font-weight: 600; }

    .choices { display: flex; flex-wrap: wrap; gap: 4px; }
    .choices legend { padding: 0; margin-bottom: 3px; font-size: 0.85em; font-weight: 600; }
    .choices label { position: relative; cursor: pointer; }
    .choices input { position: absolute; inset: 0; opacity: 0; margin: 0; width: 100%; height: 100%; cursor: pointer; }
    .choices span { display: block; padding: 0.2em 0.7em; border-radius: 7px; border: 1px solid var(--line); }
    .choices label:hover span { border-color: var(--accent); }
    .choices input:checked + span { background: var(--chosen); border-color: var(--accent); }
    .choices input:focus-visible + span, button:focus-visible, canvas:focus-visible, a:focus-visible, summary:focus-visible, input:focus-visible {
      outline: 3px solid var(--accent); outline-offset: 2px;
    }
    [popover] { position: fixed; inset: auto; margin: 0; padding: 14px 16px; max-width: min(92vw, 30em); max-height: 80vh; overflow: auto; border: 1px solid var(--line); border-radius: 12px;
      background: var(--background-fill-primary); color: var(--body-text-color); box-shadow: 0 12px 40px rgba(0, 0, 0, 0.35); font-size: 0.95em; }
    .term { text-decoration: underline dotted; text-underline-offset: 3px; text-align: left; }
    &[aria-busy="true"] :is(.scroller, .side, .columns-area, .layers-area, .sheet-area) { opacity: 0.35; }

    @container explorer (max-width: 1099px) {
      --wider: 0px;
      --side: clamp(240px, min(100dvh - 200px - 100cqw / 12 - var(--said), 100cqw - 300px), 900px);
      grid-template-columns: minmax(0, var(--side)) minmax(210px, 1fr);
      grid-template-rows: auto auto auto auto auto auto auto auto;
      .top { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: 4px 14px; padding: 7px 0 4px; justify-items: start; }
      .modes { grid-column: 1 / -1; grid-row: 2; } .model { max-width: calc(100% - 13.5em); }
      .tools-area { align-self: start; padding-top: 7px; min-height: 0; }
      grid-template-areas: "top top" "notices notices" "stage side" "layers layers" "columns columns" "photos photos" "sheet sheet" "foot foot";
    }
    @container explorer (max-width: 899px) { /* where the side is as tall as the stage and the heads */
      grid-template-rows: auto auto auto 1fr auto auto auto auto;
      grid-template-areas: "top top" "notices notices" "stage side" "columns side" "layers layers" "photos photos" "sheet sheet" "foot foot";
    }
    @container explorer (max-width: 639px) {
      --side: min(100cqw, 100dvh - 360px); --gap: 12px;
      display: flex; flex-direction: column; row-gap: 12px; align-items: stretch;
      .side { display: contents; }
      .stage-area { margin: 0 calc(-1 * var(--gap)); }
      .top { gap: 6px; padding: 6px 0 0; } .top h1 { grid-column: 1 / -1; line-height: 40px; }
      .model { grid-column: 1 / -1; max-width: 100%; font-size: 0.93em; }
      .tools-area { position: absolute; top: 6px; right: var(--gap); padding: 0; }
      .answer, .others { order: 1; } .layers-area { order: 2; } .asks { order: 3; } .photos { order: 4; } .columns-area { order: 5; }
      .predictions, .caveat, .elsewhere { order: 6; } .sheet-area, .foot { order: 7; }
      .choices span { padding: 0.5em 0.9em; }
      .link, .columns-name .term { padding-block: 0.7em; }
    }
    &[data-presenting] {
      position: fixed; inset: 0; z-index: 50; background: var(--body-background-fill); overflow: auto; align-content: safe center; column-gap: 1.5em;
      --side: min((100dvh - 50px - 7.4em) / 1.083, 100cqw - 120px); font-size: clamp(18px, 1.6cqw, 34px);
      grid-template-columns: var(--side) minmax(0, 22em); grid-template-rows: auto auto auto;
      grid-template-areas: "notices notices" "stage side" "layers layers";
      .top, .photos, .columns-area, .sheet-area, .foot, .tools-area > :not([data-part="present"]), .overlays, .more, .side > :not(.answer, .of-mode) { display: none; }
      .tools-area { position: absolute; top: 8px; right: 14px; font-size: 0.6em; opacity: 0.6; } .tools-area:is(:hover, :focus-within) { opacity: 1; }
      .title { grid-column: 1 / -1; height: 1.4em; }
    }
    @media (forced-colors: active) {
      .choices input:checked + span, button[aria-pressed="true"] { outline: 3px solid Highlight; }
    }`,

  start({ root, store }) {
    document.documentElement.style.scrollbarGutter = "stable"; // what unfolds below moves nothing aside
    store.show(({ explanation, maps, attention, coming, wanted, presenting }) => {
      root.ariaBusy = String(!!coming || (!!explanation && wanted !== explanation.url));
      root.toggleAttribute("data-presenting", presenting);
      if (!explanation) return;
      const whole = !explanation.whole || !!attention;
      Object.assign(root.dataset, { photo: explanation.name, maps: Object.keys(maps).length, whole });
    });
  },
};

/** @type {Record<string, Panel[]>} */
export const PLACES = {
  top: [modes, model],
  notices: [notices],
  stage: [stage, bubble, overlays, view],
  columns: [columns],
  layers: [layers],
  side: [answer, asks, caveat],
  sheet: [sheet],
  foot: [pipeline],
  tools: [tools],
  unseen: [spoken, keys, terms],
};
