// The address says what is shown, so that reload, Back and Forward work, and a link is the address.

import { follow, stopFollowing } from "./loading.js";
import { prefix, returned, SETTINGS, words } from "./view.js";

/** @import { Explained } from "./data/shown.js" */
/** @import { Context } from "./dom.js" */

// What Back goes back to; a layer or a head that is passed on the way is no place to stop at.
const STOPS = ["mode", "model", "example", "photo", "map", "patch", "class", "against", "overlay"];
const SETTLED = 250; // milliseconds

/**
 * @param {Context} context
 * @param {(photo: object) => void} put  shows a file again
 */
export function keepAddress(context, put) {
  const { slot, store } = context;
  if (slot !== "a") return; // one address, which the first has
  let timer = 0;

  const write = () => {
    const state = /** @type {Explained} */ (store.get());
    if (!state.explanation || state.wanted !== state.explanation.url) return;
    const [now, next] = [new URLSearchParams(location.search), words(state)];
    for (const [word, value] of now) if (!isOurs(word)) next.append(word, value); // such as Gradio's own
    if (String(now) === String(next)) return;
    const isStop = [...now.keys()].length > 0 && STOPS.some((word) => now.get(word) !== next.get(word));
    const kept = state.explanation.example ? null : state.photo;
    history[isStop ? "pushState" : "replaceState"]({ photo: kept }, "", `?${next}`);
  };

  store.watch(
    ["explanation", ...Object.keys(SETTINGS)].map((name) => /** @type {any} */ (name)),
    () => {
      clearTimeout(timer);
      timer = setTimeout(write, SETTLED);
    },
  );

  window.addEventListener("popstate", ({ state: kept }) => {
    clearTimeout(timer);
    stopFollowing(context);
    const linked = new URLSearchParams(location.search);
    const state = /** @type {Explained} */ (store.get());
    const [example, model] = [linked.get("example"), linked.get("model")];
    const sameModel = !model || model === state.explanation?.model;
    const shown = state.explanation?.example ?? null;
    const samePhoto = kept?.photo ? kept.photo.path === state.photo?.path : example === shown;
    if (state.explanation && sameModel && samePhoto) return store.set(returned(state, linked));
    store.set({ linked });
    if (kept?.photo) put(kept.photo);
    if (example || !sameModel) follow(context, { example, model: sameModel ? null : model });
  });
}

/** The photo and the model that a link names, where they are not those that the page opens with. */
export function named(/** @type {Context} */ { slot, store }, /** @type {string | undefined} */ opening) {
  const { linked } = store.get();
  const [example, named] = [linked?.get("example") ?? null, linked?.get("model") ?? null];
  const model = named === opening ? null : named;
  return slot === "a" && (example || model) ? { example, model } : null;
}

const OURS = new Set([
  "model",
  "example",
  "photo",
  "task",
  ...Object.values(SETTINGS).map(({ address }) => address?.word),
]);
const isOurs = (/** @type {string} */ word) => OURS.has(word.slice(prefix("a").length));
