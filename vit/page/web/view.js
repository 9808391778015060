// The settings of the view: one table, which says where each starts, what it resets, and how it stands in an address.

import { OVERLAY_NAMES } from "./data/look.js";
import { byClass, method, pinned, tokenMethod } from "./data/shown.js";
import { MODE_NAMES } from "./modes.js";

/** @import { Explanation } from "./data/explanation.js" */
/** @import { FileData } from "./ask.js" */
/** @import { Explained, State } from "./data/shown.js" */
/** @typedef {{ get: () => State, set: (changes: Partial<State>) => void }} Store */
/**
 * @typedef {object} Setting
 * @property {unknown} initial
 * @property {(explanation: Explanation, value: any) => unknown} [fit]  what becomes of it when a photo is opened
 * @property {(keyof State)[]} [resets]  what is set back when it is chosen
 * @property {Address} [address]  none: it is not in the address
 */
/**
 * @typedef {object} Address
 * @property {string} word
 * @property {(state: Explained) => unknown} write  null where it goes without saying
 * @property {(text: string, state: Explained) => unknown} read  undefined where it makes no sense
 */

export const OWN = "own"; // in an address, a photo that is not in it
export const LONGEST_TASK = 280; // characters
const LONGEST_AT = 4000;

/** @type {Record<string, Setting>} */
export const SETTINGS = {
  mode: { initial: MODE_NAMES[0], resets: ["at"], address: oneOf("mode", MODE_NAMES) },
  at: {
    initial: "",
    address: { word: "at", write: ({ at }) => at || null, read: (text) => text.slice(0, LONGEST_AT) },
  },
  map: {
    initial: "",
    fit: ({ methods }, value) => (methods.some(({ name }) => name === value) ? value : methods[0].name),
    resets: ["token", "against"],
    address: {
      word: "map",
      write: ({ map }) => map,
      read: (text, { explanation }) => explanation.methods.find(({ name }) => name === text)?.name,
    },
  },
  layer: {
    initial: Infinity, // the last
    fit: ({ layers }, value) => Math.min(value, layers - 1),
    address: {
      word: "layer",
      write: ({ layer }) => layer,
      read: (text, { explanation }) => number(text, explanation.layers),
    },
  },
  head: {
    initial: "mean",
    fit: ({ columns }, value) => (columns.includes(value) ? value : "mean"),
    address: {
      word: "head",
      write: ({ head }) => head,
      read: (text, { explanation }) => explanation.columns.find((head) => String(head) === text),
    },
  },
  token: {
    initial: 0,
    fit: ({ firstToken }) => firstToken,
    address: {
      word: "patch",
      write: pinned,
      read(text, state) {
        const patch = number(text, state.explanation.patches);
        return patch === undefined || !method(state).of_token ? undefined : state.explanation.tokenOf(patch);
      },
    },
  },
  direction: {
    initial: "looks_at",
    fit: () => "looks_at",
    address: {
      word: "direction",
      write: ({ direction }) => (direction === "looks_at" ? null : direction),
      read: (text) => (text === "looked_at_by" ? text : undefined),
    },
  },
  chosen: {
    initial: 0,
    fit: () => 0,
    resets: ["against"],
    address: {
      word: "class",
      write: (state) => (byClass(state) ? state.chosen : null),
      read: (text, state) => (byClass(state) ? number(text, state.explanation.predictions.length) : undefined),
    },
  },
  against: {
    initial: null,
    fit: () => null,
    address: {
      word: "against",
      write: (state) => (byClass(state) ? state.against : null),
      read(text, state) {
        const rank = byClass(state) ? number(text, state.explanation.predictions.length) : undefined;
        return rank === state.chosen ? undefined : rank;
      },
    },
  },
  overlay: { initial: OVERLAY_NAMES[0], address: oneOf("overlay", OVERLAY_NAMES) },
  whole: { initial: false, address: flag("whole", false) },
  leaveOut: { initial: true, address: flag("leaveOut", true) },
  smooth: { initial: true, address: flag("smooth", true) },
  grid: { initial: false, address: flag("grid", false) },
  scale: { initial: "own", address: oneOf("scale", ["own", "shared"]) },
  opacity: {
    initial: 60,
    address: {
      word: "opacity",
      write: ({ opacity }) => (opacity === 60 ? null : opacity),
      read: (text) => number(text, 101),
    },
  },
};

/**
 * A setting that is one of a few; the first goes without saying.
 * @param {"mode" | "overlay" | "scale"} name
 * @param {string[]} values
 * @returns {Address}
 */
function oneOf(name, values) {
  return {
    word: name,
    write: (state) => (state[name] === values[0] ? null : state[name]),
    read: (text) => (values.includes(text) ? text : undefined),
  };
}

/**
 * A setting that is on or off.
 * @param {"whole" | "leaveOut" | "smooth" | "grid"} name
 * @param {boolean} initial
 * @returns {Address}
 */
function flag(name, initial) {
  return {
    word: name.toLowerCase(),
    write: (state) => (state[name] === initial ? null : state[name] ? "on" : "off"),
    read: (text) => (text === "on" ? true : text === "off" ? false : undefined),
  };
}

/**
 * @param {string} slot
 * @param {URLSearchParams} linked
 * @returns {State}
 */
export function initialState(slot, linked) {
  const settings = Object.fromEntries(Object.entries(SETTINGS).map(([name, { initial }]) => [name, initial]));
  return /** @type {any} */ ({
    ...settings,
    slot,
    linked,
    left: null,
    wanted: null,
    explanation: null,
    photo: null,
    coming: null,
    attention: null,
    maps: {},
    looks: new Map(),
    told: {},
    hovered: null,
    across: 0,
    step: null,
    playing: false,
    story: null,
    presenting: false,
    unfolded: false,
    dark: false,
    task: linked.get(`${prefix(slot)}task`)?.slice(0, LONGEST_TASK) ?? "",
    again: null,
    photoMissing: linked.get(`${prefix(slot)}photo`) === OWN,
    models: [],
    following: null,
    loading: null,
    saving: false,
    failed: "",
    said: "",
  });
}

/** Change settings, with what they reset. */
export function choose(/** @type {Store} */ store, /** @type {Partial<State>} */ changes) {
  const { explanation } = store.get();
  const resets = Object.keys(changes).flatMap((name) => SETTINGS[name]?.resets ?? []);
  const left = "map" in changes ? { left: null } : {};
  const reset = Object.fromEntries(resets.map((name) => [name, fitted(explanation, name, undefined)]));
  store.set({ ...left, ...reset, ...changes });
}

/**
 * @param {Explanation | null} explanation
 * @param {string} name
 * @param {unknown} value
 */
function fitted(explanation, name, value) {
  const { fit, initial } = SETTINGS[name];
  return explanation && fit ? fit(explanation, value) : (value ?? initial);
}

/**
 * What changes when a photo is opened, with what a link asks for.
 * @param {State} state
 * @param {Explanation} explanation
 * @param {FileData} photo
 * @returns {Partial<State>}
 */
export function opened(state, explanation, photo) {
  const before = isAnother(state, photo) ? { ...state, layer: SETTINGS.layer.initial } : state;
  const settings = Object.keys(SETTINGS).map((name) => [
    name,
    fitted(explanation, name, before[/** @type {keyof State} */ (name)]),
  ]);
  const fresh = {
    ...Object.fromEntries(settings),
    explanation,
    photo,
    left: null,
    coming: null,
    attention: null,
    maps: {},
    looks: new Map(explanation.tensors.looks_at ? [[0, explanation.tensors]] : []),
    told: {},
    hovered: null,
    failed: "",
    linked: null,
    photoMissing: state.photoMissing && !!explanation.example,
  };
  return state.linked ? follow(state.linked, { ...state, ...fresh }) : fresh;
}

/**
 * Whether the photo is a new one to look at, from the last layer on, which gives the answer; in the layer of a single
 * head photos are compared.
 * @param {State} state
 * @param {FileData} photo
 */
function isAnother(state, photo) {
  const { explanation, head } = state;
  if (!explanation || state.photo?.path === photo.path) return false;
  return typeof head !== "number" || byClass({ ...state, explanation });
}

/**
 * What a link asks for, as far as this model and photo have it.
 * @param {URLSearchParams} words
 * @param {Explained} state
 */
export function follow(words, state) {
  for (const [name, { address }] of Object.entries(SETTINGS)) {
    const text = address && words.get(prefix(state.slot) + address.word);
    const value = text && address.read(text, state);
    if (value !== undefined && value !== null && value !== "") state = { ...state, [name]: value };
  }
  const wanted = words.get(`${prefix(state.slot)}map`);
  const missing = state.explanation.missing.find(({ name }) => name === wanted)?.missing;
  return missing ? { ...state, failed: missing } : state;
}

/** The words of an address that opens the same view. */
export function words(/** @type {Explained} */ state) {
  const { model, example } = state.explanation;
  const all = [["model", model], example ? ["example", example] : ["photo", OWN]];
  for (const { address } of Object.values(SETTINGS)) {
    const value = address?.write(state);
    if (address && value !== null && value !== undefined) all.push([address.word, String(value)]);
  }
  if (state.task) all.push(["task", state.task]);
  return new URLSearchParams(all.map(([word, value]) => [prefix(state.slot) + word, value]));
}

/** The first slot has the plain words, others have theirs before them. */
export const prefix = (/** @type {string} */ slot) => (slot === "a" ? "" : `${slot}-`);

/** The class token's look, or that of the middle patch. */
export const lookOfFirst = (/** @type {Explanation} */ explanation) => ({
  map: tokenMethod(explanation).name,
  token: explanation.firstToken,
});

/** Pins a patch, which shows its look; the pinned one is let go. */
export function pin(/** @type {Store} */ store, /** @type {number} */ patch) {
  const state = /** @type {Explained} */ (store.get());
  const { explanation } = state;
  const ofToken = method(state).of_token;
  if (ofToken && pinned(state) === patch) return goBack(store);
  const { map, chosen, against } = state;
  const left = ofToken ? state.left : { map, chosen, against };
  choose(store, { ...lookOfFirst(explanation), token: explanation.tokenOf(patch), left });
}

/** Settings as a link has them, those that it does not name as they are at first. */
export function returned(/** @type {Explained} */ state, /** @type {URLSearchParams} */ linked) {
  const settings = Object.keys(SETTINGS).map((name) => [name, fitted(state.explanation, name, SETTINGS[name].initial)]);
  return follow(linked, { ...state, ...Object.fromEntries(settings), left: null, linked: null, hovered: null });
}

/** Back to the map that was left for a patch's look, else to the class token. */
export function goBack(/** @type {Store} */ store) {
  const { explanation, left } = store.get();
  if (!explanation) return;
  const back = left ?? { against: null };
  choose(store, { ...back, left: null, token: explanation.firstToken, direction: "looks_at", hovered: null });
}

/** A whole number below a count, or undefined. */
function number(/** @type {string} */ text, /** @type {number} */ count) {
  return /^\d+$/.test(text) && Number(text) < count ? Number(text) : undefined;
}
