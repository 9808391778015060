// The sentences under the map.

import { column, layer, maps, method, pinned, values } from "../data/shown.js";
import { percent, prefixName } from "../data/words.js";

/** @import { Explained } from "../data/shown.js" */

/** @type {import("../dom.js").Panel} */
export const notes = {
  markup: `
    <p class="note" data-part="elsewhere"></p>
    <p class="note" data-part="outliers"></p>
    <p class="note" data-part="seen"></p>
    <p class="note" data-part="failed" role="alert"></p>`,

  start({ part, show }) {
    show((state) => {
      part("elsewhere").textContent = elsewhere(state) ?? method(state).note;
      part("outliers").textContent = outliers(state);
    });
    show(({ explanation }) => {
      part("seen").textContent = explanation.cropped
        ? "The model saw the lit part of the photo only: its preparation cuts the rest off."
        : "";
    });
    show(({ failed }) => {
      part("failed").textContent = failed;
    });
  },
};

/** How much of a look goes to, or comes from, what is no patch. */
function elsewhere(/** @type {Explained} */ state) {
  const shares = maps(state)?.elsewhere?.[state.layer][column(state)];
  if (!shares) return null;
  const { explanation, direction } = state;
  const isPinned = pinned(state) !== null;
  const looks = direction === "looks_at";
  const listed = explanation.prefix.map((name, token) => {
    const itself = !isPinned && token === 0;
    return `${percent(shares[token])} ${looks ? "to" : "from"} ${itself ? "itself" : prefixName(name)}`;
  });
  if (!listed.length) return "";
  const who = isPinned ? "this patch" : "the class token";
  const text = `Besides the patches, ${who} ${looks ? "gives" : "gets"} ${listed.join(", ")}`;
  return looks ? `${text}.` : `${text}: shares of each one's own look.`;
}

function outliers(/** @type {Explained} */ state) {
  const flagged = [...state.explanation.outliers(layer(state))];
  const count = flagged.filter(Boolean).length;
  if (!count) return "No outlier patches in this layer.";
  const shown = values(state);
  let taken = "";
  if (shown && method(state).unit === "share") {
    const share = shown.reduce((sum, value, patch) => sum + (flagged[patch] ? value : 0), 0);
    taken = state.leaveOut ? " left out" : `, ${percent(share)} together`;
  }
  return `Outlier patches in this layer, with more than twice the usual norm: ${count}${taken}.`;
}
