// An explorer: a store, its panels, and the photos that the server sends.

import { createAsk } from "./ask.js";
import { Explanation } from "./data/explanation.js";
import { make, mount } from "./dom.js";
import { frame, PLACES } from "./layout.js";
import { createStore } from "./store.js";
import { initialState, opened, prefix } from "./view.js";

/** @import { Answer } from "./ask.js" */
/** @import { File } from "./data/safetensors.js" */
/** @import { Context } from "./dom.js" */
/**
 * @typedef {object} Component  What Gradio hands to a script.
 * @property {HTMLElement} element
 * @property {{ slot: string, value: any }} props
 * @property {(event: string, data: object) => void} trigger
 * @property {(prop: string, f: () => void) => void} watch
 */

/** @type {Map<string, (answer: Answer) => void>} */
const explorers = new Map(); // by slot

/** Starts an explorer in its component. */
export function start(/** @type {Component} */ { element, props, trigger, watch }) {
  const { slot } = props;
  const store = createStore(initialState(slot, new URLSearchParams(location.search)));
  const ask = createAsk(trigger, () => store.get().wanted);
  const root = make("section", { className: "explorer", ariaLabel: "Attention explorer" });
  /** @type {Context["show"]} */
  const show = (f) => store.show((state) => state.explanation && f(/** @type {any} */ (state)));
  const context = { slot, store, ask, root, show };

  mount(frame, root, context);
  for (const [place, panels] of Object.entries(PLACES))
    for (const panel of panels)
      mount(panel, /** @type {Element} */ (root.querySelector(`[data-place="${place}"]`)), context);
  element.replaceChildren(root);
  explorers.set(slot, ask.answer);

  askForMore(context);
  const load = () => open(context, props.value?.explanation?.url);
  watch("value", load);
  load();
  followLink(context);
}

/** Hands what the server said to the explorer that asked. */
export function answer(/** @type {string} */ slot, /** @type {Answer | null} */ said) {
  if (said) explorers.get(slot)?.(said);
}

async function open(/** @type {Context} */ { store, ask }, /** @type {string | undefined} */ url) {
  const { wanted, explanation: before } = store.get();
  if (!url || url === wanted) return;
  store.set({ wanted: url });
  try {
    const explanation = await ask.read(url, async (file) => new Explanation(file, await pictureOf(file), url));
    store.set(opened(store.get(), explanation));
    before?.picture.close();
  } catch (error) {
    store.set({ failed: `The map could not be fetched (${/** @type {Error} */ (error).message}): try again.` });
  }
}

const pictureOf = (/** @type {File} */ { tensors }) =>
  createImageBitmap(new Blob([/** @type {any} */ (tensors.photo.data)], { type: "image/jpeg" }));

/** What is asked for when a photo is shown: its other maps, and the look of a patch that did not come along. */
function askForMore(/** @type {Context} */ { store, root, ask: { ask, read } }) {
  const fail = (/** @type {Error} */ { message }) =>
    store.set({ failed: `A map could not be fetched (${message}): try again.` });

  store.watch(["explanation"], ({ explanation }) => {
    if (root.getBoundingClientRect().top > window.innerHeight / 2) root.scrollIntoView(); // on a phone, below the examples
    const seen = () => {
      if (store.get().wanted !== explanation?.url) return;
      ask("ask_maps", {}, ({ url }) =>
        read(url, ({ tensors }) => tensors).then((tensors) => {
          store.set({ maps: { ...store.get().maps, ...tensors } });
        }, fail),
      );
    };
    requestAnimationFrame(() => setTimeout(seen));
  });

  store.watch(["explanation", "token"], async (state) => {
    const { explanation, wanted, token, looks } = state;
    const patch = explanation?.patchOf(token) ?? null;
    if (!explanation || explanation.whole || patch === null || looks.has(token) || wanted !== explanation.url) return;
    const [file] = await ask("ask_patch", { patch });
    try {
      const found = file && (await read(file.url, ({ tensors }) => tensors));
      if (found) store.set({ looks: new Map(store.get().looks).set(token, found) });
      else if (store.get().token === token) store.set({ token: explanation.firstToken });
    } catch (error) {
      fail(/** @type {Error} */ (error));
    }
  });
}

/** The photo and the model that a link names; the rest of it is read when they are here. */
function followLink(/** @type {Context} */ { slot, store, ask: { ask } }) {
  const { linked } = store.get();
  const [example, model] = ["example", "model"].map((word) => linked?.get(prefix(slot) + word) ?? null);
  if (example || model) ask("follow_link", { example, model });
}
