// The reading of a patch, at the pointer or finger.

import { method, patchShare, pinned } from "../data/shown.js";
import { boxOn, patchBox, viewOf } from "../draw/photo.js";

/** @type {import("../dom.js").Panel} */
export const bubble = {
  markup: `<p class="bubble" data-part="patch-text" aria-hidden="true" hidden></p>`,

  style: `
    .bubble { position: absolute; z-index: 2; pointer-events: none; padding: 0.3em 0.7em; border-radius: 8px; background: #ffd60a; color: #14161b; font-size: 0.85em; font-weight: 600; max-width: 17em; width: max-content; }`,

  start({ part, show, root }) {
    const bubble = part("patch-text");
    show((state) => {
      const { hovered, explanation, whole } = state;
      bubble.hidden = hovered === null;
      if (hovered === null) return;
      const isPinned = pinned(state) === hovered && method(state).of_token;
      const hint = isPinned ? "back" : "what does this patch look at?";
      const touch = matchMedia("(pointer: coarse)").matches;
      bubble.textContent = `${patchShare(state, hovered)} · ${touch ? "tap again" : "click"}: ${hint}`;
      const canvas = /** @type {HTMLElement} */ (root.querySelector('[data-part="stage"]'));
      const area = /** @type {HTMLElement} */ (bubble.parentElement);
      const [at, from] = [canvas.getBoundingClientRect(), area.getBoundingClientRect()];
      const box = boxOn(explanation.box, viewOf(explanation, whole), at.width, at.height);
      const [x, y, width, height] = patchBox(hovered, box, explanation.grid);
      const [left, top] = [at.left - from.left + x, at.top - from.top + y];
      const { offsetWidth, offsetHeight } = bubble;
      const right = left + width + 8 + offsetWidth <= from.width;
      const above = top - offsetHeight - 8 >= 0;
      const place = right
        ? [left + width + 8, top + height / 2 - offsetHeight / 2]
        : [Math.max(4, left + width - offsetWidth), above ? top - offsetHeight - 8 : top + height + 8];
      bubble.style.left = `${place[0]}px`;
      bubble.style.top = `${Math.max(4, place[1])}px`;
    });
  },
};
