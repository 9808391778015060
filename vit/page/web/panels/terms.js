// Words that explain themselves: at a click, or when the pointer rests on them.

import { GLOSSARY } from "../data/glossary.js";
import { placeBeside } from "../dom.js";

const RESTS = 600; // milliseconds

/** @type {import("../dom.js").Panel} */
export const terms = {
  markup: `
    <div class="explained" popover data-part="explained" role="dialog" aria-label="What it means">
      <h3 data-part="term"></h3>
      <p data-part="meaning"></p>
      <div class="equation" data-part="equation"></div>
      <code data-part="code"></code>
    </div>`,

  style: `
    .explained { width: 26em; }
    .explained:popover-open { display: grid; gap: 8px; }
    .explained h3 { font-size: 1em; }
    .equation { overflow: auto hidden; padding: 5px 0; font-size: 1.05em; }
    .equation:empty, .explained code:empty { display: none; }
    .explained code { font: 0.8em var(--font-mono); color: var(--quiet); white-space: pre-wrap; overflow-wrap: anywhere; }`,

  start({ part, root }) {
    const shown = part("explained");
    let timer = 0;

    const explain = (/** @type {HTMLElement} */ from) => {
      const { text, markup, code } = GLOSSARY[from.dataset.term ?? ""];
      part("term").textContent = from.dataset.term;
      part("meaning").textContent = text;
      part("equation").replaceChildren(...(markup ? [document.createRange().createContextualFragment(markup)] : []));
      part("code").textContent = code ? `vit/model.py:  ${code}` : "";
      shown.showPopover();
      const equation = part("equation");
      equation.tabIndex = equation.scrollWidth > equation.clientWidth ? 0 : -1; // to be scrolled by keyboard
      placeBeside(shown, from.getBoundingClientRect());
    };
    const termOf = (/** @type {Event} */ event) =>
      /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest?.("[data-term]"));

    root.addEventListener("click", (event) => {
      const from = termOf(event);
      clearTimeout(timer);
      if (from) explain(from);
    });
    root.addEventListener("pointerover", (event) => {
      clearTimeout(timer);
      const from = termOf(event);
      if (from && event.pointerType === "mouse") timer = setTimeout(() => explain(from), RESTS);
    });
    root.addEventListener("pointerout", (event) => {
      clearTimeout(timer);
      if (event.pointerType !== "mouse" || !shown.matches(":popover-open")) return;
      const to = /** @type {Element | null} */ (event.relatedTarget);
      timer = setTimeout(() => {
        if (!shown.matches(":hover")) shown.hidePopover();
      }, RESTS / 2);
      if (to && shown.contains(to)) clearTimeout(timer);
    });
  },
};
