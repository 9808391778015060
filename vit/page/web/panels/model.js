// The model, and what it knows: a button that opens the list of others.

import { capital } from "../data/words.js";
import { make, opens } from "../dom.js";
import { load } from "../loading.js";

/** @type {import("../dom.js").Panel} */
export const model = {
  markup: `
    <button type="button" class="pill model" data-part="model" hidden><strong data-part="model-name"></strong><span class="quiet" data-part="knows"></span><span aria-hidden="true" data-part="arrow">▾</span></button>
    <div class="models" popover data-part="models" role="dialog" aria-label="Models">
      <ul data-part="model-list"></ul>
      <form class="any" data-part="any" hidden>
        <label>Any Hub id or folder <input type="text" data-part="any-name" autocomplete="off" spellcheck="false"></label>
        <button class="pill">Load</button>
      </form>
    </div>`,

  style: `
    .model { min-width: 0; }
    .model .quiet { flex: none; white-space: nowrap; }
    .model strong { min-width: 3em; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; font-weight: 600; }
    .models ul { display: grid; gap: 4px; }
    .models li button { width: 100%; padding: 8px 10px; border-radius: 8px; text-align: left; border: 1px solid transparent; }
    .models li button:hover { border-color: var(--accent); }
    .models li button[aria-pressed="true"] { background: var(--chosen); }
    .models li span { display: block; }
    .any { display: flex; gap: 8px; align-items: end; margin-top: 10px; }
    .any label { flex: 1; font-size: 0.85em; }
    .any input { width: 100%; padding: 6px 8px; border: 1px solid var(--line); border-radius: 8px; background: var(--body-background-fill); }
    @container explorer (max-width: 639px) { .model { padding: 0.5em 1em; } }`,

  start(context) {
    const { part, store, show } = context;
    opens(part("model"), part("models"));
    const choose = (/** @type {string} */ source) => {
      part("models").hidePopover();
      load(context, "choose_model", { model: source });
    };
    show(({ explanation: { title, knows }, models }) => {
      part("model").hidden = false;
      part("model-name").textContent = title;
      part("knows").textContent = `knows ${knows}`;
      part("model").disabled = !models.length;
      part("arrow").hidden = !models.length;
    });
    store.show(({ models, explanation }) => {
      part("model-list").replaceChildren(
        ...models.map(({ source, name, size, knows, look_for }) => {
          const button = make("button", { type: "button", onclick: () => choose(source) }, { source });
          button.setAttribute("aria-pressed", String(source === explanation?.model));
          const about = [`knows ${knows}`, size].filter(Boolean).join(" · ");
          button.append(
            make("strong", { textContent: name }),
            make("span", { className: "quiet", textContent: about }),
          );
          if (look_for) button.append(make("span", { className: "quiet", textContent: capital(look_for) }));
          const row = make("li");
          row.append(button);
          return row;
        }),
      );
    });
    store.show(({ models }) => {
      part("any").hidden = !models.some(({ any }) => any);
    });
    part("any").addEventListener("submit", (/** @type {Event} */ event) => {
      event.preventDefault();
      if (part("any-name").value.trim()) choose(part("any-name").value.trim());
    });
  },
};
