// The page before Gradio is there: what Gradio was told is enough to begin with, and its components take over.

import { start as startAnswers } from "./answers.js";
import { make } from "./dom.js";
import { start as startExplorer } from "./main.js";
import { start as startPhotos } from "./photo.js";

/**
 * @typedef {object} Component  What Gradio hands to a script.
 * @property {HTMLElement} element
 * @property {any} props
 * @property {(event: string, data: object) => void} trigger
 * @property {(prop: string, f: () => void) => void} watch
 * @property {(file: File) => Promise<{ path: string, url: string }>} upload
 * @property {Promise<unknown>} there  Gradio's component is: until then, what it is to do for us waits
 */
/** @typedef {{ props: { component_class_name: string, props: object, value: unknown } }} Described  in Gradio's config */
/** @typedef {Element & { moveBefore: (node: Node, before: null) => void }} Movable  as TypeScript does not know it yet */

/** @type {Record<string, (component: Component) => unknown>} */
const STARTS = { Explorer: startExplorer, PhotoBox: startPhotos, Answers: startAnswers };
const SHOWN = ["Explorer", "PhotoBox"]; // what the visitor sees of them

/** @type {Map<string, (component: Component) => void>} */
const standing = new Map(); // how Gradio's component takes over from what stands for it, by its kind

const PATIENCE = 1000; // milliseconds, after which Gradio waits no longer
const LATE = 20_000; // and after which something must have gone wrong with it

/**
 * Where there is one explorer with its photo box: of several, only Gradio knows the places. A promise that the first
 * picture is there.
 */
export async function begin(
  /** @type {{ components?: Described[], title?: string }} */ { components = [], title = "" },
) {
  const shown = components.map(({ props }) => props).filter(({ component_class_name: kind }) => SHOWN.includes(kind));
  if (String(shown.map(({ component_class_name: kind }) => kind)) !== String(SHOWN)) return;
  document.title = title;
  const theme = new URLSearchParams(location.search).get("__theme") ?? "system"; // as Gradio reads it
  const isDark = theme === "system" ? matchMedia("(prefers-color-scheme: dark)").matches : theme === "dark";
  document.body.classList.toggle("dark", isDark);
  const cover = make("div", { className: "prose gradio-style" });
  cover.style.cssText =
    "position: absolute; inset: 0 0 auto; min-height: 100%; z-index: 200; background: var(--body-background-fill); font-family: var(--font)";
  document.body.append(cover);
  const opened = [];
  for (const { component_class_name: kind, props, value } of shown) {
    const element = make("div");
    cover.append(element);
    const { component, takeOver } = standIn(element, { ...props, value });
    standing.set(kind, (real) => {
      takeOver(real);
      element.remove();
      if (!cover.firstChild) cover.remove();
    });
    opened.push(STARTS[kind](component));
  }
  setTimeout(() => {
    const textContent = "A part of the page could not be loaded: reload it.";
    if (standing.size) cover.prepend(make("p", { role: "alert", textContent, style: "padding: 8px; margin: 0" }));
  }, LATE);
  const drawn = Promise.all(opened).then(() => new Promise(requestAnimationFrame));
  await Promise.race([drawn, new Promise((resolve) => setTimeout(resolve, PATIENCE))]);
}

/** Starts a component of Gradio's, or lets it take over what stands for it. */
export function start(/** @type {string} */ kind, /** @type {Omit<Component, "there">} */ component) {
  const begun = standing.get(kind);
  standing.delete(kind);
  (begun ?? STARTS[kind])({ ...component, there: Promise.resolve() });
}

/**
 * What stands for a component until it comes: what it is to do for us waits.
 * @param {HTMLElement} element
 * @param {any} given  its props until then
 */
function standIn(element, given) {
  let props = given;
  /** @type {(real: Component) => void} */
  let come = () => {};
  /** @type {Promise<Component>} */
  const coming = new Promise((resolve) => {
    come = resolve;
  });
  /** @type {Component} */
  const component = {
    element,
    props: new Proxy(given, {
      get: (_, name) => props[name],
      set(_, name, value) {
        coming.then((real) => {
          real.props[name] = value;
        });
        return true;
      },
    }),
    trigger: (event, data) => void coming.then((real) => real.trigger(event, data)),
    watch: (prop, f) => void coming.then((real) => real.watch(prop, f)),
    upload: send, // on a slow network, Gradio is later than the photo
    there: coming,
  };
  function takeOver(/** @type {Component} */ real) {
    real.element.style.cssText = element.style.cssText;
    move(element, /** @type {Movable} */ (real.element));
    props = real.props;
    come(real);
  }
  return { component, takeOver };
}

/** Sends a file as Gradio's component does. */
async function send(/** @type {File} */ file) {
  const api = new URL("gradio_api/", document.baseURI);
  const body = new FormData();
  body.append("files", file, file.name);
  const answer = await fetch(new URL("upload", api), { method: "POST", body });
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  const [path] = await answer.json();
  return { path, url: new URL(`file=${path}`, api).href };
}

/** Moves what is in an element, so that windows stay open, and the focus and the page where they are. */
function move(/** @type {Element} */ from, /** @type {Movable} */ to) {
  const [focused, top] = [document.activeElement, scrollY];
  to.replaceChildren();
  for (const node of [...from.childNodes]) {
    try {
      to.moveBefore(node, null);
    } catch {
      to.append(node); // older browsers close windows so
    }
  }
  if (focused instanceof HTMLElement) focused.focus({ preventScroll: true });
  scrollTo({ top, behavior: "instant" });
}
