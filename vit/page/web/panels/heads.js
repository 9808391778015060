// Which head.

import { byClass } from "../data/shown.js";
import { check, choices } from "../dom.js";

/** @type {import("../dom.js").Panel} */
export const heads = {
  markup: `<fieldset class="choices heads" data-part="heads"><legend>Head</legend><div data-part="each"></div></fieldset>`,
  start(context) {
    const { part, show } = context;
    show(({ explanation }) => {
      const options = explanation.columns.map((head) => ({ value: head, text: String(head) }));
      part("each").replaceChildren(...choices(context, "head", options));
    });
    show((state) => {
      check(part("each"), state.head);
      part("heads").disabled = byClass(state);
    });
  },
};
