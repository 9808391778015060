// The heads, or classes, of the layer: a small picture for each, which is clicked.

import { memo } from "../data/derive.js";
import { byClass, column, maps, ofWholeModel } from "../data/shown.js";
import { columnName } from "../data/words.js";
import { make, whenSeen } from "../dom.js";
import { small, thumbnail } from "../draw/picture.js";
import { choose } from "../view.js";

/** @import { Explained } from "../data/shown.js" */

const SIDE = 176; // pixels, twice what is seen
const TALLEST = 7; // in one column
/** @type {Record<string, string>} */
const FULL = { mean: "All heads, their mean", max: "All heads, their maximum" };

/** @type {import("../dom.js").Panel} */
export const columns = {
  markup: `
    <h3 class="columns-name"><button type="button" class="term" data-part="columns-name" data-term="head"></button></h3>
    <div class="columns" data-part="columns" role="group" aria-label="Heads"></div>
    <button type="button" class="link unfold" data-part="unfold" aria-expanded="false">all layers</button>`,

  style: `
    .columns-area { max-height: calc(var(--side)); min-width: 6em; display: flex; flex-direction: column; gap: 6px; }
    .columns-name { text-align: center; font-weight: 400; color: var(--quiet); }
    .columns { display: grid; grid-auto-flow: column; grid-template-rows: repeat(var(--rows), auto); gap: 6px 10px; padding: 5px; margin: -5px 0; overflow: hidden; justify-content: center; }
    .columns .thumb { width: min(5.4em, (var(--side) - 4em) / var(--rows) - 2em); }
    .unfold { font-size: 0.8em; align-self: center; color: var(--quiet); }
    @container explorer (max-width: 1099px) {
      .columns-area { max-height: none; min-width: 0; flex-direction: row; align-items: center; gap: 12px; overflow-x: auto; padding: 5px 0; margin: -5px 0; }
      .columns { grid-auto-flow: row; grid-template-rows: auto; grid-template-columns: repeat(var(--count), 64px); overflow: visible; justify-content: start; }
      .columns .thumb { width: 64px; }
      .unfold { white-space: nowrap; align-self: auto; }
    }
    @container explorer (640px <= width < 900px) { .columns { grid-template-columns: repeat(var(--count), 52px); column-gap: 6px; } .columns .thumb { width: 52px; } }`,

  start({ part, store, show }) {
    const group = part("columns");
    const photos = memo((/** @type {Explained["explanation"]} */ explanation) => small(explanation, SIDE));
    let made = "";
    let byArrow = false;

    const pick = (/** @type {number} */ place) => {
      const state = /** @type {Explained} */ (store.get());
      const found = maps(state);
      if (!found) return;
      if (!byClass(state)) choose(store, { head: /** @type {any} */ (found.columns[place]) });
      else if (found.ranks) choose(store, { chosen: found.ranks[place] });
    };

    show((state) => {
      const found = maps(state);
      part("columns-name").textContent = byClass(state) ? "classes" : "heads";
      part("columns-name").dataset.term = byClass(state) ? "relevance" : "head";
      part("unfold").hidden = !found || ofWholeModel(state);
      if (!found) return;
      const { explanation } = state;
      const key = JSON.stringify([found.columns, explanation.grid]);
      if (key !== made) {
        made = key;
        const count = found.columns.length;
        group.style.setProperty("--rows", Math.ceil(count / Math.ceil(count / TALLEST)));
        group.style.setProperty("--count", count);
        group.replaceChildren(
          ...found.columns.map((name, place) => {
            const button = make(
              "button",
              { type: "button", className: "thumb", onclick: () => pick(place) },
              { place },
            );
            const text = columnName(/** @type {any} */ (name));
            const full = FULL[name] ?? text;
            button.append(make("canvas"), make("span", { textContent: text.replace("head ", ""), title: full }));
            button.ariaLabel = full;
            return button;
          }),
        );
      }
      draw(state);
    });
    const draw = whenSeen(function* (/** @type {Explained} */ state) {
      const found = maps(state);
      if (!found) return;
      const ready = photos(state.explanation);
      for (const [place, button] of [...group.children].entries()) {
        const canvas = button.firstElementChild;
        [canvas.width, canvas.height] = [ready.width, ready.height];
        const values = found.layers[ofWholeModel(state) ? 0 : state.layer][place];
        canvas.getContext("2d").drawImage(thumbnail(ready, state, values), 0, 0);
        canvas.style.setProperty("--shape", ready.width / ready.height);
        yield;
      }
    });
    show((state) => {
      const chosen = column(state);
      for (const [place, button] of [...group.children].entries()) {
        button.setAttribute("aria-pressed", place === chosen);
        button.tabIndex = place === Math.max(0, chosen) ? 0 : -1;
        if (place === chosen && byArrow) button.focus();
      }
      byArrow = false;
    });
    show(({ unfolded }) => part("unfold").setAttribute("aria-expanded", unfolded));
    group.addEventListener("keydown", (/** @type {KeyboardEvent} */ { key }) => {
      byArrow = key === "ArrowUp" || key === "ArrowDown";
    });
    part("unfold").addEventListener("click", () => store.set({ unfolded: !store.get().unfolded }));
  },
};
