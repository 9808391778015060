// The tabs of the modes. A mode is loaded when it is first opened, and its panels then stay in their places.

import { make, mount } from "../dom.js";
import { MODE_NAMES, MODES } from "../modes.js";
import { choose } from "../view.js";

/** @import { Context } from "../dom.js" */
/** @import { Mode } from "../modes.js" */

/** @type {import("../dom.js").Panel} */
export const modes = {
  markup: `<div class="modes" data-part="modes" role="tablist" aria-label="Modes"></div>`,

  style: `
    .modes { display: flex; gap: 2px; padding: 3px; border-radius: 10px; background: var(--card); font-size: 0.88em; }
    .modes button { padding: 0.3em 0.5em; border-radius: 8px; white-space: nowrap; color: var(--quiet); }
    .modes button:hover { color: var(--body-text-color); }
    .modes [aria-selected="true"] { background: var(--chosen); color: var(--body-text-color); }
    [data-taken] > :not(.of-mode) { display: none !important; }
    .of-mode { display: contents; }
    @container explorer (max-width: 1099px) {
      &[data-mode]:not([data-mode="look"]) .stage-area { position: sticky; top: 0; z-index: 2; align-self: start; background: var(--body-background-fill); } /* what is done below is seen on it */
    }
    @container explorer (640px <= width < 1100px) {
      &[data-mode]:not([data-mode="look"], [data-presenting]) {
        --side: clamp(240px, min(100dvh - 200px - 100cqw / 12, 50cqw - 30px), 900px);
        grid-template-rows: none;
        grid-template-areas: "top top" "notices notices" "stage side" "layers layers" "columns columns" "photos photos" "sheet sheet" "foot foot";
      }
    }
    @container explorer (max-width: 639px) {
      &[data-mode]:not([data-mode="look"]) .stage-area { align-self: stretch; }
      padding-bottom: 4em;
      .modes { position: fixed; z-index: 3; left: 0; right: 0; bottom: 0; justify-content: space-around; border-radius: 0; border-top: 1px solid var(--line); }
      .modes button { flex: auto; padding: 0.75em 0.3em; white-space: normal; line-height: 1.1; }
    }
    @media (forced-colors: active) { .modes [aria-selected="true"] { outline: 3px solid Highlight; } }`,

  start(context) {
    const { part, root, store, show } = context;
    const tabs = MODE_NAMES.map((name) =>
      make(
        "button",
        { type: "button", role: "tab", textContent: MODES[name].title, onclick: () => choose(store, { mode: name }) },
        { mode: name },
      ),
    );
    part("modes").append(...tabs);
    part("modes").addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.stopPropagation();
      const place = (MODE_NAMES.indexOf(store.get().mode) + step + tabs.length) % tabs.length;
      choose(store, { mode: MODE_NAMES[place] });
      tabs[place].focus();
    });

    /** @type {Map<string, Promise<Mode>>} */
    const opened = new Map();
    const open = (/** @type {string} */ name) => {
      const found = opened.get(name) ?? MODES[name].load?.().then(({ mode }) => put(context, name, mode));
      if (found) opened.set(name, found);
      return found ?? { places: {}, takes: [] };
    };
    show(async ({ mode }) => {
      for (const tab of tabs) {
        tab.setAttribute("aria-selected", tab.dataset.mode === mode);
        tab.tabIndex = tab.dataset.mode === mode ? 0 : -1;
      }
      try {
        const { takes = [] } = await open(mode);
        if (store.get().mode !== mode) return;
        root.dataset.mode = mode;
        for (const place of root.querySelectorAll("[data-place]"))
          place.toggleAttribute("data-taken", takes.includes(place.getAttribute("data-place") ?? ""));
        for (const panels of /** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll(".of-mode")))
          panels.hidden = panels.dataset.of !== mode;
      } catch {
        opened.delete(mode);
        choose(store, { mode: "look", failed: "This part of the page could not be loaded: try again." });
      }
    });
  },
};

/**
 * Puts a mode's panels in their places; what they show follows the state while it is open.
 * @param {Context} context
 * @param {string} name
 * @param {Mode} mode
 */
function put(context, name, mode) {
  /** @type {Context["show"]} */
  const show = (f) => context.show((state) => state.mode === name && f(state));
  for (const [place, panels] of Object.entries(mode.places)) {
    const own = make("div", { className: "of-mode", hidden: true }, { of: name });
    context.root.querySelector(`[data-place="${place}"]`)?.append(own);
    for (const panel of panels) mount(panel, own, { ...context, show });
  }
  return mode;
}
