// All layers and heads, or classes: one canvas, with a button over each map.

import { byClass, column, layer, maps, ofWholeModel, scaleOf } from "../data/shown.js";
import { columnName } from "../data/words.js";
import { make } from "../dom.js";
import { heatTile } from "../draw/heat.js";
import { coloursOf } from "../draw/picture.js";
import { choose } from "../view.js";

/** @import { Explained } from "../data/shown.js" */

/** @type {import("../dom.js").Panel} */
export const sheet = {
  markup: `
    <h3 class="sheet-title" data-part="sheet-title" hidden></h3>
    <div class="sheet" data-part="sheet" hidden>
      <canvas data-part="sheet-canvas" aria-hidden="true"></canvas>
      <div class="cells" data-part="cells"></div>
    </div>`,

  style: `
    .sheet-area:not(:has(> :not([hidden]))) { display: none; }
    h3.sheet-title { margin: 8px 0; font-size: 1em; }
    .sheet { position: relative; }
    .sheet canvas { position: absolute; left: 0; top: 0; width: 100%; height: 100%; }
    .cells { position: relative; display: grid; grid-template-columns: minmax(4ch, max-content) repeat(var(--layers), minmax(0, 110px)); justify-content: center; align-items: center; }
    .cells button { margin: 0; min-width: 0; aspect-ratio: var(--shape); padding: 0; border: 2px solid transparent; background: none; border-radius: 4px; cursor: pointer; }
    .cells button[aria-pressed="true"] { border-color: var(--mark); box-shadow: 0 0 0 1px var(--mark); }
    .row-name, .layer-name { font-size: 0.8em; color: var(--quiet); }
    .row-name { padding-right: 8px; max-width: 14ch; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
    .layer-name { text-align: center; }
    @container explorer (max-width: 639px) { .row-name { max-width: 7ch; padding-right: 4px; font-size: 11px; } }`,

  start({ part, store, show }) {
    const [canvas, cells] = [part("sheet-canvas"), part("cells")];
    store.watch(["unfolded"], ({ unfolded }) => unfolded && part("sheet").scrollIntoView({ block: "nearest" }));
    let drawn = "";
    let byArrow = false;
    let timer = 0;

    const pick = (/** @type {number} */ layer, /** @type {number} */ row) => {
      const state = /** @type {Explained} */ (store.get());
      const found = maps(state);
      if (!found) return;
      const where = ofWholeModel(state) ? {} : { layer };
      if (!byClass(state)) choose(store, { ...where, head: /** @type {any} */ (found.columns[row]) });
      else store.set(found.ranks ? { ...where, chosen: found.ranks[row] } : where);
    };

    // The buttons over the sheet are made anew only when there are others.
    const showCells = (/** @type {Explained} */ state, /** @type {(string | number)[]} */ columns) => {
      const { grid } = state.explanation;
      const names = ofWholeModel(state)
        ? [""]
        : Array.from({ length: state.explanation.layers }, (_, layer) => String(layer + 1));
      const key = JSON.stringify([names, grid, columns]);
      if (drawn === key) return;
      drawn = key;
      const rows = columns.flatMap((name, row) => {
        const head = columnName(/** @type {any} */ (name));
        const buttons = names.map((number, layer) => {
          const title = number ? `Layer ${number}, ${head}` : head;
          const onclick = () => pick(layer, row);
          return make("button", { type: "button", title, ariaLabel: title, onclick }, { row, layer });
        });
        return [make("span", { className: "row-name", textContent: head, title: head }), ...buttons];
      });
      const numbers = names.map((number) => make("span", { className: "layer-name", textContent: number }));
      const corner = make("span", { className: "row-name", textContent: ofWholeModel(state) ? "" : "layer" });
      cells.style.setProperty("--layers", names.length);
      cells.style.setProperty("--shape", grid[1] / grid[0]);
      cells.replaceChildren(corner, ...numbers, ...rows);
    };

    const press = (/** @type {number} */ layer, /** @type {number} */ row) => {
      for (const button of cells.querySelectorAll("button")) {
        const chosen = Number(button.dataset.layer) === layer && Number(button.dataset.row) === row;
        button.setAttribute("aria-pressed", chosen);
        button.tabIndex = chosen ? 0 : -1;
        if (chosen && byArrow) button.focus();
      }
      byArrow = false;
    };

    const draw = show((state) => {
      part("sheet").hidden = part("sheet-title").hidden = !state.unfolded || ofWholeModel(state);
      const found = state.unfolded ? maps(state) : null;
      if (!found) return;
      const { grid } = state.explanation;
      const look = { colours: coloursOf(state), signed: found.signed, smooth: state.smooth };
      const scales = found.layers.map((columns) => columns.map((values) => scaleOf(state, values)));
      showCells(state, found.columns);
      const columns = byClass(state) ? "classes" : "heads";
      part("sheet-title").textContent = ofWholeModel(state) ? `All ${columns}` : `All layers and ${columns}`;
      clearTimeout(timer);
      timer = setTimeout(() => {
        const ratio = window.devicePixelRatio || 1;
        const [width, height] = [Math.round(cells.clientWidth * ratio), Math.round(cells.clientHeight * ratio)];
        if (!width || !height) return;
        [canvas.width, canvas.height] = [width, height];
        const context = canvas.getContext("2d");
        context.imageSmoothingEnabled = look.smooth;
        const from = cells.getBoundingClientRect();
        for (const button of cells.querySelectorAll("button")) {
          const { row, layer } = button.dataset;
          const tile = heatTile(found.layers[layer][row], grid, scales[layer][row], look);
          const at = button.getBoundingClientRect();
          const [x, y, across, down] = [at.left - from.left + 2, at.top - from.top + 2, at.width - 4, at.height - 4];
          context.drawImage(tile, x * ratio, y * ratio, across * ratio, down * ratio);
        }
      }); // when the photo has been seen
    });
    show((state) => {
      if (maps(state)) press(ofWholeModel(state) ? 0 : layer(state), column(state));
    });
    new ResizeObserver(draw).observe(cells);
    cells.addEventListener("keydown", (/** @type {KeyboardEvent} */ { key }) => {
      byArrow = key.startsWith("Arrow");
    });
  },
};
