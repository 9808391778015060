// The layers: a small picture for each, and the word that the classifier would say after it. Dragging moves through them.

import { memo } from "../data/derive.js";
import { column, maps, ofWholeModel } from "../data/shown.js";
import { chapters, isClear } from "../data/story.js";
import { capital, layerName, percent, plain } from "../data/words.js";
import { make, whenSeen } from "../dom.js";
import { small, thumbnail } from "../draw/picture.js";

/** @import { Explained } from "../data/shown.js" */

const SIDE = 112; // pixels
const PACE = 600; // milliseconds for each layer
const MANY = 14; // layers, beside whose numbers there is no room

/** @type {import("../dom.js").Panel} */
export const layers = {
  markup: `
    <div class="layers" data-part="layers">
      <button type="button" class="round" data-part="play" aria-pressed="false" aria-label="Play the layers">▶</button>
      <div class="strip" data-part="strip">
        <div class="pictures" data-part="pictures" aria-hidden="true"></div>
        <input type="range" data-part="layer" min="0" step="1" aria-label="Layer">
        <ol class="ribbon" data-part="ribbon" aria-label="What it would say after each layer"></ol>
      </div>
      <p class="now" data-part="now"></p>
    </div>`,

  style: `
    .layers { display: grid; grid-template-columns: auto minmax(0, 1fr); align-items: start; gap: 6px 12px; }
    .round { width: 40px; height: 40px; margin-top: 6px; flex: none; border-radius: 50%; border: 1px solid var(--line); font-size: 0.8em; }
    .round:hover { border-color: var(--accent); }
    @container explorer (min-width: 1100px) { /* beneath the photos, so that the strip begins where the stage does */
      &:not([data-presenting]) .layers { position: relative; grid-template-columns: minmax(0, 1fr); }
      &:not([data-presenting]) .round { position: absolute; left: calc(-1 * var(--gap) - (var(--rail) + 40px) / 2); }
    }
    .strip { position: relative; min-width: 0; container-type: inline-size; padding-top: 3px; }
    .pictures, .ribbon { display: grid; grid-template-columns: repeat(var(--layers), minmax(0, 1fr)); }
    .pictures > div { padding: 0 2px; transition: opacity 0.3s; }
    .pictures canvas { display: block; width: 100%; aspect-ratio: var(--shape); border-radius: 6px; background: var(--card); }
    .pictures p { margin: 4px -2em 0; text-align: center; white-space: nowrap; font-size: 0.72em; line-height: 1.4; color: var(--quiet); pointer-events: none; }
    .pictures span { color: inherit; } .many .pictures span { display: none; }
    .pictures .now canvas { box-shadow: 0 0 0 2px var(--body-background-fill), 0 0 0 4.5px var(--mark); }
    .pictures .now p { color: var(--body-text-color); font-weight: 700; }
    .pictures .later { opacity: 0; }
    .strip input { position: absolute; left: 0; top: 0; width: 100%; height: calc(100cqw / var(--layers) + 1em); margin: 0; opacity: 0; cursor: pointer; touch-action: pan-y; appearance: none; }
    .strip input::-webkit-slider-thumb { appearance: none; width: calc(100cqw / var(--layers)); height: calc(100cqw / var(--layers)); }
    .strip input::-moz-range-thumb { width: calc(100cqw / var(--layers)); border: 0; }
    .strip:has(input:focus-visible) .pictures { outline: 3px solid var(--accent); outline-offset: 3px; border-radius: 6px; }
    .ribbon li { min-width: 0; margin: 2px 1px 0; padding: 1px 0; border-radius: 6px; background: linear-gradient(to right, var(--surer)); color: var(--quiet); font-size: 0.69em; line-height: 1.35; min-height: 2.9em; display: grid; place-items: center; text-align: center; overflow: hidden; transition: opacity 0.3s; }
    .ribbon span { max-width: 100%; max-height: 2.7em; overflow: hidden; text-overflow: ellipsis; }
    .ribbon li.clear { color: var(--body-text-color); font-weight: 500; }
    .ribbon li.now { box-shadow: inset 0 -2.5px var(--mark); }
    .ribbon li.later { opacity: 0; }
    .now[data-part] { display: none; }
    @container explorer (max-width: 639px) {
      .strip { grid-column: 1 / -1; grid-row: 1; }
      .round { width: 44px; height: 44px; margin: 0; }
      .now[data-part] { display: block; align-self: center; font-size: 0.92em; }
      .ribbon, .pictures span { display: none; }
      .pictures > div { padding: 0 1px; }
      .pictures canvas { aspect-ratio: 0.62; object-fit: cover; } /* slices, as high as a thumb */
      .strip input { height: 100%; }
      .pictures .now canvas { box-shadow: 0 0 0 2px var(--mark); }
    }`,

  start({ part, store, show }) {
    const [slider, play, pictures, ribbon] = [part("layer"), part("play"), part("pictures"), part("ribbon")];
    const photos = memo((/** @type {Explained["explanation"]} */ explanation) => small(explanation, SIDE));

    show(({ explanation: { layers, decided, box } }) => {
      slider.max = layers - 1;
      part("layers").style.setProperty("--layers", layers);
      part("layers").style.setProperty("--shape", (box[2] - box[0]) / (box[3] - box[1]));
      pictures.replaceChildren(
        ...Array.from({ length: layers }, (_, layer) => {
          const cell = make("div");
          const name = make("p", { textContent: layer + 1 });
          name.append(make("span"));
          cell.append(make("canvas"), name);
          return cell;
        }),
      );
      part("layers").classList.toggle("many", layers > MANY);
      const told = chapters(decided);
      ribbon.hidden = !told.length;
      ribbon.replaceChildren(
        ...told.map((told) => {
          const { label, from, to, shares } = told;
          const chapter = make("li", {}, { from, to });
          chapter.append(make("span", { textContent: plain(label) }));
          chapter.style.gridColumn = `${from + 1} / ${to + 2}`;
          chapter.classList.toggle("clear", isClear(told));
          const colours = shares.map((share) => `color-mix(in srgb, var(--bar) ${100 * share}%, var(--card))`);
          chapter.style.setProperty("--surer", [colours[0], ...colours].join());
          return chapter;
        }),
      );
    });
    const draw = whenSeen(function* (/** @type {Explained} */ state) {
      const found = maps(state);
      const which = column(state);
      if (!found || ofWholeModel(state) || which < 0) return;
      const ready = photos(state.explanation);
      for (const [layer, cell] of [...pictures.children].entries()) {
        const canvas = cell.firstElementChild;
        [canvas.width, canvas.height] = [ready.width, ready.height];
        canvas.getContext("2d").drawImage(thumbnail(ready, state, found.layers[layer][which]), 0, 0);
        yield;
      }
    });
    show((state) => {
      part("layers").hidden = ofWholeModel(state);
      draw(state);
    });
    show(({ explanation, layer, story }) => {
      const { layers, decided } = explanation;
      const told = story === null ? layers : Math.floor(((story - 0.3) / 0.65) * layers); // how many have come in
      slider.value = layer;
      const says = word(explanation, layer);
      slider.setAttribute("aria-valuetext", `${layerName(layer)} of ${layers}${says && `: ${says}`}`);
      part("now").textContent = says ? `After ${layerName(layer)}: ${says}` : `Layer ${layer + 1} of ${layers}`;
      for (const [index, cell] of [...pictures.children].entries()) {
        cell.classList.toggle("now", index === layer);
        cell.classList.toggle("later", index > told);
        cell.querySelector("span").textContent = index === layer && says ? ` · ${percent(decided[layer][0][1])}` : "";
      }
      for (const chapter of ribbon.children) {
        chapter.classList.toggle("now", chapter.dataset.from <= layer && layer <= chapter.dataset.to);
        chapter.classList.toggle("later", chapter.dataset.from > told);
      }
    });
    show(({ playing }) => {
      play.textContent = playing ? "❚❚" : "▶";
      play.setAttribute("aria-pressed", playing);
    });

    part("strip").addEventListener("pointermove", (/** @type {PointerEvent} */ { clientX }) => {
      const { explanation } = /** @type {Explained} */ (store.get());
      if (!explanation) return;
      const { left, width } = pictures.getBoundingClientRect();
      const pointed = Math.floor(((clientX - left) / width) * explanation.layers);
      const says = word(explanation, pointed);
      part("strip").title = says && `${capital(layerName(pointed))}: ${says}`;
    });

    let timer = 0;
    store.watch(["playing"], ({ playing }) => {
      clearInterval(timer);
      if (!playing) return;
      timer = setInterval(() => {
        const { explanation, layer } = /** @type {Explained} */ (store.get());
        const next = Math.min(layer + 1, explanation.layers - 1);
        store.set({ layer: next, playing: next < explanation.layers - 1 });
      }, PACE);
    });
    store.watch(["mode"], () => store.set({ playing: false }));
    play.addEventListener("click", () => {
      const { explanation, layer, playing } = /** @type {Explained} */ (store.get());
      const again = !playing && layer === explanation.layers - 1; // from the first layer on
      store.set({ playing: !playing, ...(again && { layer: 0 }) });
    });
    slider.addEventListener("input", () => store.set({ playing: false, layer: Number(slider.value) }));
  },
};

/** What it would say after a layer, and how sure it is; "" where it names nothing. */
function word(/** @type {Explained["explanation"]} */ { decided }, /** @type {number} */ layer) {
  const best = decided[layer]?.[0];
  return best ? `${plain(best[0])}, ${percent(best[1])}` : "";
}
