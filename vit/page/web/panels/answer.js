// What the model says the photo is; a class shows what speaks for it, and a second one the difference.

import { byClass, classMethod } from "../data/shown.js";
import { storyText } from "../data/story.js";
import { percent, plain } from "../data/words.js";
import { make } from "../dom.js";
import { load } from "../loading.js";
import { choose } from "../view.js";

/** @import { Explained } from "../data/shown.js" */

const FIRST = 3; // classes that are shown before the others are asked for
const SURE = 0.25; // a probability below which a guess is called one

/** @type {import("../dom.js").Panel} */
export const answer = {
  markup: `
    <div class="answer">
      <p class="unfamiliar" data-part="unfamiliar" hidden></p>
      <h2 data-part="answer"></h2>
      <p class="quiet"><span data-part="story"></span> <button type="button" class="term" data-part="lens" data-term="logit lens">How do we know?</button></p>
      <p class="quiet" data-part="remarks" hidden></p>
    </div>
    <div class="others" data-part="others" hidden>
      <button type="button" class="pill" data-part="other"></button>
    </div>
    <div class="predictions" data-part="predictions">
      <ul class="classes" data-part="classes"></ul>
      <button type="button" class="link quiet" data-part="more-classes"></button>
    </div>`,

  style: `
    .answer h2 { font-size: 1.75em; line-height: 1.15; font-weight: 700; overflow-wrap: anywhere; }
    .share-of { white-space: nowrap; }
    .answer .quiet { margin-top: 4px; }
    .unfamiliar { font-size: 1.1em; color: var(--mark-text); font-weight: 600; }
    .classes { display: grid; gap: 5px; }
    .classes li { display: flex; gap: 5px; }
    .class {
      flex: 1; min-width: 0; display: flex; justify-content: space-between; gap: 8px; padding: 0.4em 0.7em; border-radius: 8px; text-align: left;
      background: linear-gradient(to right, var(--bar) calc(var(--share) * 100%), var(--card) 0) border-box; border: 1px solid transparent;
    }
    .class:hover, .less:hover { border-color: var(--accent); }
    .class[aria-pressed="true"] { border-color: var(--mark); box-shadow: inset 0 0 0 1px var(--mark); }
    .class span:first-child { overflow-wrap: anywhere; }
    .class span:last-child { white-space: nowrap; font-variant-numeric: tabular-nums; }
    .less { width: 2.2em; flex: none; text-align: center; border: 1px solid var(--line); border-radius: 8px; }
    .less[aria-pressed="true"] { background: var(--chosen); border-color: var(--mark); }
    .less:disabled { visibility: hidden; }
    .predictions .link { font-size: 0.85em; margin-top: 4px; }
    @container explorer (max-width: 639px) { .answer h2 { font-size: 1.5em; } }
    @media (forced-colors: active) { .class { forced-color-adjust: none; } }`,

  start(context) {
    const { part, store, show } = context;
    const pick = (/** @type {number} */ rank, /** @type {boolean} */ second) => {
      const state = /** @type {Explained} */ (store.get());
      const map = classMethod(state)?.name;
      if (!second || rank === state.chosen) return choose(store, { map, chosen: rank });
      const same = byClass(state) && state.against === rank;
      choose(store, { map, against: same ? null : rank });
    };

    show(({ explanation }) => {
      const { predictions, unfamiliar } = explanation;
      const [best] = predictions;
      part("unfamiliar").hidden = !unfamiliar && !(best && best.probability < SURE);
      part("unfamiliar").textContent =
        `${unfamiliar ? "I don’t know photos like this" : "I am not sure"}. My best guess:`;
      const share = best && make("span", { className: "share-of", textContent: percent(best.probability) });
      part("answer").replaceChildren(
        ...(best ? [`${plain(best.label)}, `, share, unfamiliar ? "?" : ""] : ["It names nothing"]),
      );
      part("story").textContent = best
        ? storyText(explanation)
        : "This model learnt without classes. You can still see where it looks.";
      part("remarks").hidden = !explanation.remarks.length;
      part("remarks").textContent = explanation.remarks.join(" ");
      part("lens").hidden = part("predictions").hidden = !best;
    });
    show(({ explanation, models }) => {
      // Another that knows more, where this one does not know the photo.
      const here = models.find(({ source }) => source === explanation.model);
      const known = here?.classes ?? explanation.predictions.length;
      const other = models.find(({ source, classes }) => source !== explanation.model && classes > known);
      part("others").hidden = !explanation.unfamiliar || !other;
      if (!other) return;
      part("other").textContent = `Ask ${other.name}: it knows ${other.knows}`;
      part("other").onclick = () => load(context, "choose_model", { model: other.source });
    });
    show(({ explanation: { predictions } }) => {
      const rows = predictions.map(({ label, probability }, rank) => {
        const bar = make("button", { type: "button", className: "class" }, { rank });
        bar.onclick = (/** @type {MouseEvent} */ event) => pick(rank, event.shiftKey);
        bar.title = `What speaks for ${plain(label)}?`;
        bar.style.setProperty("--share", probability);
        bar.append(make("span", { textContent: plain(label) }), make("span", { textContent: percent(probability) }));
        const title = `The difference to ${plain(label)}`;
        const less = make(
          "button",
          { type: "button", className: "less", textContent: "−", title, ariaLabel: title },
          { rank },
        );
        less.onclick = () => pick(rank, true);
        const row = make("li", { hidden: rank >= FIRST });
        row.append(bar, less);
        return row;
      });
      part("classes").replaceChildren(...rows);
      part("more-classes").hidden = rows.length <= FIRST;
      part("more-classes").textContent = `${rows.length - FIRST} more`;
    });
    part("more-classes").addEventListener("click", () => {
      for (const row of part("classes").children) row.hidden = false;
      part("more-classes").hidden = true;
      part("classes").children[FIRST].firstElementChild.focus();
    });
    show((state) => {
      const [chosen, against] = byClass(state) ? [state.chosen, state.against] : [null, null];
      for (const button of part("classes").querySelectorAll("button")) {
        const rank = Number(button.dataset.rank);
        const isLess = button.className === "less";
        button.setAttribute("aria-pressed", rank === (isLess ? against : chosen));
        if (isLess) {
          button.hidden = !byClass(state);
          button.disabled = rank === state.chosen;
        }
      }
    });
  },
};
