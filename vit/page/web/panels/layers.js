// The scrubber through the layers; above it the likeliest class's probability after each.

import { percent } from "../data/words.js";
import { make } from "../dom.js";

/** @import { Explained } from "../data/shown.js" */

const PACE = 600; // milliseconds for each layer

/** @type {import("../dom.js").Panel} */
export const layers = {
  markup: `
    <div class="scrubber">
      <button type="button" class="round" data-part="play" aria-pressed="false" aria-label="Play the layers">▶</button>
      <div class="track">
        <div class="bars" data-part="bars" aria-hidden="true"></div>
        <input type="range" data-part="layer" min="0" step="1" aria-label="Layer">
      </div>
      <output class="number" data-part="layer-number"></output>
    </div>`,

  style: `
    .scrubber { display: flex; align-items: end; gap: 12px; margin-top: 14px; }
    .track { flex: 1; min-width: 0; }
    .track input { display: block; width: 100%; margin: 2px 0 0; accent-color: var(--accent); }
    .round { width: 40px; height: 40px; flex: none; border-radius: 50%; border: 1px solid var(--border-color-primary); background: var(--background-fill-primary); color: var(--body-text-color); font-size: 14px; }
    .number { min-width: 13ch; font-size: 14px; font-weight: 600; font-variant-numeric: tabular-nums; }
    .bars { display: flex; gap: 3px; height: 34px; align-items: end; padding: 0 2px; }
    .bars div { flex: 1; height: calc(2px + var(--share) * 32px); background: var(--track); border-radius: 2px 2px 0 0; cursor: pointer; }
    .bars .now { background: var(--accent); }
    @container (max-width: 760px) { .scrubber { margin-top: 0; } }
    @media (forced-colors: active) { .bars div { forced-color-adjust: none; } }`,

  start({ part, store, show }) {
    const [slider, play] = [part("layer"), part("play")];
    show(({ explanation: { lens, layers, predictions } }) => {
      slider.max = layers - 1;
      const bars = lens.map((probability, layer) => {
        const title = `${percent(probability)} ${predictions[0].label} after layer ${layer}`;
        const bar = make("div", { title, onclick: () => store.set({ layer }) });
        bar.style.setProperty("--share", probability);
        return bar;
      });
      part("bars").replaceChildren(...bars);
    });
    show(({ explanation: { layers }, layer }) => {
      slider.value = layer;
      slider.setAttribute("aria-valuetext", `layer ${layer} of 0 to ${layers - 1}`);
      part("layer-number").textContent = `layer ${layer} of 0–${layers - 1}`;
      for (const [index, bar] of [...part("bars").children].entries()) bar.classList.toggle("now", index === layer);
    });
    show(({ playing }) => {
      play.textContent = playing ? "❚❚" : "▶";
      play.setAttribute("aria-pressed", playing);
    });

    let timer = 0;
    store.watch(["playing"], ({ playing }) => {
      clearInterval(timer);
      if (!playing) return;
      timer = setInterval(() => {
        const { explanation, layer } = /** @type {Explained} */ (store.get());
        store.set({ layer: (layer + 1) % explanation.layers });
      }, PACE);
    });
    play.addEventListener("click", () => store.set({ playing: !store.get().playing }));
    slider.addEventListener("input", () => store.set({ playing: false, layer: Number(slider.value) }));
  },
};
