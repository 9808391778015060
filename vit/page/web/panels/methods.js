// Which map: a button for each method that the checkpoint can give.

import { check, choices } from "../dom.js";

/** @type {import("../dom.js").Panel} */
export const methods = {
  markup: `<fieldset class="choices" data-part="methods"><legend>Map</legend></fieldset>`,
  start(context) {
    const group = context.part("methods");
    context.show(({ explanation }) => {
      const options = explanation.methods.map(({ name, title, paper }) => ({ value: name, text: title, title: paper }));
      group.replaceChildren(group.firstElementChild, ...choices(context, "map", options));
    });
    context.show(({ map }) => check(group, map));
  },
};
