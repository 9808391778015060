// What a screen reader says of a change, once it has settled.

import { ends, patchText, scaleOf, title, values } from "../data/shown.js";

const SETTLED = 400; // milliseconds

/** @type {import("../dom.js").Panel} */
export const spoken = {
  markup: `<p class="spoken" data-part="spoken" role="status" aria-live="polite"></p>`,
  style: `.spoken { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }`,

  start({ part, show }) {
    let timer = 0;
    show((state) => {
      const shown = values(state);
      const highest = shown ? `Highest value ${ends(state, scaleOf(state, shown))[1]}.` : "Working this map out.";
      const text = `${title(state)}. ${highest} ${state.hovered === null ? "" : patchText(state)}`;
      clearTimeout(timer);
      timer = setTimeout(() => {
        part("spoken").textContent = text;
      }, SETTLED);
    });
    show(({ said }) => {
      part("spoken").textContent = said;
    });
  },
};
