// Panels on the page: each brings its markup, its style, and what makes them follow the state.

import { choose } from "./view.js";

/** @import { Ask } from "./ask.js" */
/** @import { Explained, State } from "./data/shown.js" */
/** @import { createStore } from "./store.js" */
/** @typedef {ReturnType<typeof createStore<State>>} Store */
/**
 * @typedef {object} Context
 * @property {string} slot
 * @property {Store} store
 * @property {Ask} ask
 * @property {HTMLElement} root  of the explorer
 * @property {(f: (state: Explained) => void) => () => void} show  `store.show`, once there is a photo
 */
/** @typedef {Context & { part: (name: string) => any }} Parts  part: an element of the panel's own markup */
/**
 * @typedef {object} Panel
 * @property {string} markup  static: what comes from outside is set as text
 * @property {string} [style]
 * @property {(parts: Parts) => void} [start]
 */

/**
 * @param {Panel} panel
 * @param {Element} place
 * @param {Context} context
 */
export function mount({ markup, style, start }, place, context) {
  const made = document.createRange().createContextualFragment(markup);
  const parts = new Map([...made.querySelectorAll("[data-part]")].map((one) => [one.getAttribute("data-part"), one]));
  addStyle(style ?? "");
  place.append(made);
  start?.({ ...context, part: (name) => parts.get(name) });
}

const LEAST = 160; // pixels of a small window's height

/** @type {Set<string>} */
const styles = new Set();

/** The rules count as much as Gradio's own, which are bound to an id. */
export function addStyle(/** @type {string} */ style, scope = "explorer") {
  if (!style || styles.has(style)) return;
  styles.add(style);
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`:is(.${scope}, #${scope}) { ${style} }`);
  document.adoptedStyleSheets.push(sheet);
}

/**
 * @param {string} tag
 * @param {object} properties
 * @param {Record<string, string | number>} dataset
 * @returns {any}
 */
export function make(tag, properties = {}, dataset = {}) {
  const made = document.createElement(tag);
  Object.assign(made, properties);
  for (const [name, value] of Object.entries(dataset)) made.dataset[name] = String(value);
  return made;
}

/**
 * A choice for each option, which are the values of a setting. Names of radio buttons count on the whole page.
 * @param {Context} context
 * @param {keyof State} setting
 * @param {{ value: unknown, text: string, title?: string }[]} options
 */
export function choices({ slot, store }, setting, options) {
  return options.map(({ value, text, title = "" }) => {
    const label = make("label", { title });
    const onchange = () => choose(store, { [setting]: value });
    const checked = store.get()[setting] === value;
    label.append(
      make("input", { type: "radio", name: `${slot}-${setting}`, value: String(value), checked, onchange }),
      make("span", { textContent: text }),
    );
    return label;
  });
}

/**
 * Checks what is chosen.
 * @param {Element} group
 * @param {unknown} value
 */
export function check(group, value) {
  for (const input of group.querySelectorAll("input")) input.checked = input.value === String(value);
}

/** Gradio's messages are a button in a button, which screen readers cannot tell apart: let the outer one be plain. */
export function mendMessages() {
  new MutationObserver(() => {
    for (const outer of document.querySelectorAll(".toast-header[role=button]")) {
      outer.removeAttribute("role");
      outer.removeAttribute("tabindex");
    }
  }).observe(document.body, { childList: true, subtree: true });
}

/** Hands a file to the visitor. */
export function saveAs(/** @type {string} */ url, /** @type {string} */ name) {
  const link = make("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
}

/**
 * Does something step by step when what has changed is on the screen, each step between frames; of several times the
 * last.
 * @template Given
 * @param {(given: Given) => Generator<void>} f
 */
export function whenSeen(f) {
  let last = 0;
  return (/** @type {Given} */ given) => {
    const asked = ++last;
    const steps = f(given);
    const go = () => {
      if (asked === last && !steps.next().done) setTimeout(go);
    };
    requestAnimationFrame(() => setTimeout(go));
  };
}

/**
 * A small window beside the button that opens it: the browser closes it with Escape, or a click elsewhere.
 * @param {HTMLElement} button
 * @param {HTMLElement} window_
 */
export function opens(button, window_) {
  /** @type {any} */ (button).popoverTargetElement = window_; // or the click would close it, and open it again
  button.addEventListener("click", (event) => {
    event.preventDefault();
    // Placed at once: the browser tells of it later, when a hand may be on its way already.
    if (window_.togglePopover()) placeBeside(window_, button.getBoundingClientRect());
  });
  window_.addEventListener("toggle", () =>
    button.setAttribute("aria-expanded", String(window_.matches(":popover-open"))),
  );
  button.setAttribute("aria-expanded", "false");
}

/**
 * Below a place, or above it where there is more room, and within the window.
 * @param {HTMLElement} shown
 * @param {{ left: number, right: number, top: number, bottom: number }} place
 */
export function placeBeside(shown, { left, top, bottom }) {
  shown.style.maxHeight = "";
  const { width, height } = shown.getBoundingClientRect();
  const [above, below] = [top - 14, innerHeight - bottom - 14];
  const isBelow = below >= height || below >= above;
  shown.style.maxHeight = `min(80vh, ${Math.max(LEAST, isBelow ? below : above)}px)`; // the rest is scrolled to
  shown.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`;
  shown.style.top = isBelow ? `${Math.max(8, Math.min(bottom + 6, innerHeight - height - 8))}px` : "auto";
  shown.style.bottom = isBelow ? "auto" : `${innerHeight - top + 6}px`; // it grows away from the place
}
