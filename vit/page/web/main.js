// An explorer: a store, its panels, and the photos that the server sends.

import { keepAddress, named } from "./address.js";
import { createAsk } from "./ask.js";
import { Explanation } from "./data/explanation.js";
import { make, mendMessages, mount } from "./dom.js";
import { frame, PLACES } from "./layout.js";
import { follow, followNoFurther } from "./loading.js";
import { playStory } from "./opening.js";
import { createStore } from "./store.js";
import { initialState, opened } from "./view.js";

/** @import { Answer, FileData } from "./ask.js" */
/** @import { File } from "./data/safetensors.js" */
/** @import { Coming, Model } from "./data/shown.js" */
/** @import { Context } from "./dom.js" */
/** @import { Component } from "./early.js" */
/**
 * @typedef {object} Photos  The photo box.
 * @property {HTMLElement} root
 * @property {(photo: object) => void} put  shows a file again
 * @property {(example: string) => void} press  "" is the photo of one's own
 * @property {(photo: FileData, picture: ImageBitmap) => void} keep  that is one's own
 */

const SOON = 2000; // milliseconds in which a photo that a link names is on its way

/** @type {Map<string, Context>} */
const explorers = new Map(); // by slot
/** @type {Map<string, Photos>} */
const boxes = new Map(); // photo boxes, by the slot that they are for
/** @type {Map<string, Coming | null>} */
const announced = new Map(); // the photos that they said were coming

/** Starts an explorer in its component; a promise that the photo of the opening is there, where there is one. */
export function start(/** @type {Component} */ { element, props, trigger, watch, there }) {
  const { slot } = props;
  const store = createStore(initialState(slot, new URLSearchParams(location.search)));
  const ask = createAsk(
    trigger,
    () => store.get().wanted,
    () => store.get().coming !== null,
  );
  store.watch(["coming"], ask.listen);
  const root = make("section", { className: "explorer", ariaLabel: "Attention explorer" });
  /** @type {Context["show"]} */
  const show = (f) => store.show((state) => state.explanation && f(/** @type {any} */ (state)));
  const context = { slot, store, ask, root, show };

  /** @type {{ url: string, orig_name: string } | null} */
  const again = store.get().photoMissing ? (history.state?.photo ?? null) : null;
  store.set({ models: props.models ?? [], coming: announced.get(slot) ?? null, again });
  followTheme(context);
  mount(frame, root, context);
  /** @type {Element} */ (root.querySelector("h1")).textContent = props.title;
  for (const [place, panels] of Object.entries(PLACES))
    for (const panel of panels)
      mount(panel, /** @type {Element} */ (root.querySelector(`[data-place="${place}"]`)), context);
  if (!explorers.size) mendMessages();
  element.replaceChildren(root);
  element.style.container = "explorer / inline-size"; // of two side by side, each goes by its own width
  explorers.set(slot, context);
  if (again) announce(slot, { name: again.orig_name, src: again.url });
  dock(slot);

  askForMore(context, there);
  const linked = location.search.length > 1;
  const shown = () => open(context, props.value);
  watch("value", shown);
  const elsewhere = named(context, props.value?.model);
  if (elsewhere)
    there
      .then(() => {
        const chosen = announced.get(slot); // by the visitor, meanwhile: what the link shows must not replace it
        const isLinked = !chosen || chosen.name === elsewhere.example;
        if (isLinked) return follow(context, elsewhere);
        return elsewhere.model ? follow(context, { ...elsewhere, example: null }) : null;
      })
      .then(() => {
        setTimeout(() => store.get().wanted ?? shown(), SOON); // a link to nothing
      });
  const photo = elsewhere || again ? null : shown().then(() => playStory(context, linked));
  keepAddress(context, (photo) => boxes.get(slot)?.put(photo));
  return photo;
}

/** Hands what the server said to the explorer that asked. */
export function answer(/** @type {string} */ slot, /** @type {Answer | null} */ said) {
  if (said) explorers.get(slot)?.ask.answer(said);
}

/** Gives the photo box its place in the explorer of a slot, whichever of the two is here first. */
export function offer(/** @type {string} */ slot, /** @type {Photos} */ photos) {
  boxes.set(slot, photos);
  dock(slot);
}

function dock(/** @type {string} */ slot) {
  const [context, photos] = [explorers.get(slot), boxes.get(slot)];
  if (!context || !photos) return;
  context.root.querySelector('[data-place="photos"]')?.replaceChildren(photos.root);
  const { again } = context.store.get();
  if (again) photos.put(again);
  context.store.show(({ coming, explanation }) => photos.press(coming ? coming.name : (explanation?.example ?? "")));
}

/** Whether an example is shown, or with null a photo of one's own, and none other is on its way. */
export function isShown(/** @type {string} */ slot, /** @type {string | null} */ example) {
  const { coming, following, explanation } = explorers.get(slot)?.store.get() ?? {};
  return !coming && !following?.example && explanation?.example === example;
}

/** A photo was chosen: it is shown at once, and what is old is dimmed; null where it came to nothing. */
export function announce(/** @type {string} */ slot, /** @type {Coming | null} */ coming) {
  announced.set(slot, coming);
  const context = explorers.get(slot);
  if (!context) return;
  context.store.set({ coming, ...(coming && { photoMissing: false, failed: "" }) });
  if (coming) followNoFurther(context, coming.name);
}

/** Shows what the server made of a photo; null where there is none yet. */
async function open(
  /** @type {Context} */ { slot, store, ask },
  /** @type {{ photo: FileData, explanation: FileData } | null} */ files,
) {
  const { wanted, explanation: before } = store.get();
  if (!files) return;
  const { url } = files.explanation;
  if (url === wanted) return before?.url === url ? store.set({ coming: null }) : undefined;
  store.set({ wanted: url });
  try {
    const read = () => ask.read(url, async (file) => new Explanation(file, await pictureOf(file), url));
    const explanation = await read().catch(read); // a network may fail once
    store.set(opened(store.get(), explanation, files.photo));
    if (!explanation.example) boxes.get(slot)?.keep(files.photo, explanation.picture);
    before?.picture.close();
  } catch (error) {
    const { message } = /** @type {Error} */ (error);
    const failed = `The map could not be fetched (${message}): choose another photo, or reload the page.`;
    store.set({ wanted: before?.url ?? null, coming: null, failed });
  }
}

const pictureOf = (/** @type {File} */ { tensors }) =>
  createImageBitmap(new Blob([/** @type {any} */ (tensors.photo.data)], { type: "image/jpeg" }));

/** What is asked for when a photo is shown: its other maps, all of the attention, and until then the look of a patch. */
function askForMore(/** @type {Context} */ { store, ask: { ask, read } }, /** @type {Promise<unknown>} */ there) {
  let reading = new AbortController();
  /** @type {Explanation | null} */
  let complete = null; // the photo of which all is here

  const fail = (/** @type {Error} */ { name, message }) => {
    if (name !== "AbortError") store.set({ failed: `A map could not be fetched (${message}): try again.` });
  };
  const tensorsOf = (/** @type {string} */ url) => read(url, ({ tensors }) => tensors, reading.signal);

  // Of a photo that is left, nothing more is fetched: the next one needs the network. If it comes to nothing, go on.
  store.watch(["explanation", "coming"], ({ explanation, coming }) => {
    reading.abort();
    reading = new AbortController();
    if (!explanation || coming || complete === explanation) return;
    const { signal } = reading;
    requestAnimationFrame(() => setTimeout(() => !signal.aborted && fetchAll(explanation, signal).catch(fail)));
  });

  async function fetchAll(/** @type {Explanation} */ explanation, /** @type {AbortSignal} */ signal) {
    await there;
    if (signal.aborted || store.get().wanted !== explanation.url) return;
    /** @type {Promise<void>[]} */
    const arriving = [];
    await ask("ask_maps", {}, ({ url }) => {
      if (signal.aborted) return;
      const arrived = tensorsOf(url).then((tensors) => store.set({ maps: { ...store.get().maps, ...tensors } }));
      arriving.push(arrived);
      arrived.catch(fail);
    });
    if (signal.aborted) return;
    if (explanation.whole) {
      const [file] = await ask("ask_attention");
      if (signal.aborted) return;
      if (file) store.set({ attention: await tensorsOf(file.url) });
    }
    await Promise.all(arriving);
    complete = explanation;
  }

  store.watch(["explanation", "token", "direction"], async (state) => {
    const { explanation, attention, wanted, token, looks, direction } = state;
    if (!explanation || attention || looks.get(token)?.[direction] || wanted !== explanation.url) return;
    const [file] = await ask("ask_patch", { patch: explanation.patchOf(token) });
    try {
      const found = file && (await tensorsOf(file.url));
      if (found) store.set({ looks: new Map(store.get().looks).set(token, found) });
      else if (store.get().token === token) store.set({ token: explanation.firstToken, left: null });
    } catch (error) {
      fail(/** @type {Error} */ (error));
    }
  });
}

/** Light or dark, as Gradio says it. */
function followTheme(/** @type {Context} */ { store }) {
  const tell = () => store.set({ dark: document.body.classList.contains("dark") });
  new MutationObserver(tell).observe(document.body, { attributeFilter: ["class"] });
  tell();
}
