// The photo box: whatever way a photo comes, it is sent to the server, and becomes the component's value.

import { timely } from "./ask.js";
import { addStyle, make, opens } from "./dom.js";
import { contextOf } from "./draw/photo.js";
import { announce, isShown, offer } from "./main.js";

const MARKUP = `
  <button type="button" class="own" data-part="own"><span class="plus" aria-hidden="true">+</span> <span class="word">your photo</span></button>
  <div class="ways" popover data-part="ways" role="dialog" aria-label="Your photo">
    <label class="way"><input type="file" accept="image/*,.heic,.heif" data-part="file"><span>Choose a file</span></label>
    <button type="button" class="way" data-part="camera">Camera</button>
    <button type="button" class="way" data-part="paste">Paste</button>
    <p class="by-mouse">Or drop one anywhere on the page.</p>
  </div>
  <div class="examples" data-part="examples" role="group" aria-label="Photos"></div>
  <p class="said" data-part="said" role="status"></p>
  <dialog data-part="shutter" aria-label="Take a photo">
    <video data-part="finder" autoplay playsinline muted></video>
    <div class="shutter">
      <button type="button" class="way" data-part="take">Take the photo</button>
      <button type="button" class="way" data-part="cancel">Cancel</button>
    </div>
  </dialog>`;

const STYLE = `
  --accent: color-mix(in srgb, var(--primary-500) 80%, var(--body-text-color)); color: var(--body-text-color);
  --line: color-mix(in srgb, var(--body-text-color) 22%, var(--body-background-fill)); --mark: #b45309;
  .dark & { --mark: #ffd60a; }
  display: flex; flex-direction: column; gap: 8px; position: relative; height: 100%; min-height: 0;
  p { margin: 0; }
  button { margin: 0; font: inherit; color: inherit; cursor: pointer; }
  .own { flex: none; width: var(--rail); min-height: var(--rail); padding: 4px; border: 2px dashed var(--line); border-radius: 12px; background: none; line-height: 1.2; }
  .own span { display: block; }
  .own .plus { font-size: 1.2em; line-height: 1; }
  .own .word { font-size: 0.8em; }
  .own:hover, &.over .own { border-color: var(--mark); }
  .said { font-size: 0.8em; }
  .said:empty { display: none; }
  .ways:popover-open { display: grid; gap: 8px; }
  .ways { position: fixed; inset: auto; margin: 0; padding: 14px; border: 1px solid var(--line); border-radius: 12px; background: var(--background-fill-primary); color: var(--body-text-color); box-shadow: 0 12px 40px rgba(0, 0, 0, 0.35); }
  @media (pointer: coarse) { .by-mouse { display: none; } }
  .shutter { display: flex; gap: 8px; justify-content: center; margin-top: 10px; }
  .way { position: relative; display: block; padding: 9px 16px; text-align: center; cursor: pointer; border: 1px solid var(--line); border-radius: 9px; background: var(--body-background-fill); }
  .way:hover { border-color: var(--accent); }
  .way input { position: absolute; inset: 0; width: 100%; height: 100%; opacity: 0; cursor: pointer; font-size: 0; }
  .way:focus-within, button:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
  .examples { position: relative; display: flex; flex-direction: column; gap: 8px; overflow-y: auto; scrollbar-width: none; padding: 5px; margin: -5px; max-height: calc(var(--side) - var(--rail) + 2px); mask-image: linear-gradient(to bottom, black calc(100% - 24px), transparent); padding-bottom: 24px; }
  .examples button { flex: none; width: var(--rail); height: var(--rail); padding: 0; border: 0; border-radius: 12px; background: none; line-height: 0; }
  .examples img { width: 100%; height: 100%; object-fit: cover; border-radius: 12px; margin: 0; background: var(--card); }
  .examples button:hover img { filter: brightness(1.15); }
  .examples button[aria-pressed="true"] img { box-shadow: 0 0 0 2px var(--body-background-fill), 0 0 0 4.5px var(--mark); }
  dialog { max-width: min(92vw, 720px); padding: 14px; border: 1px solid var(--line); border-radius: 12px; background: var(--background-fill-primary); color: var(--body-text-color); margin: auto !important; }
  dialog::backdrop { background: rgba(0, 0, 0, 0.6); }
  video { width: 100%; border-radius: 8px; background: black; }
  @container explorer (max-width: 1099px) {
    flex-direction: row; align-items: start; flex-wrap: wrap;
    .examples { flex: 1; flex-direction: row; overflow: auto hidden; mask-image: linear-gradient(to right, black calc(100% - 24px), transparent); padding: 5px 24px 5px 5px; }
    .said { flex-basis: 100%; }
  }`;

const SIDE = 144; // pixels of a thumbnail, as the examples have them
const LARGE = 300_000; // bytes of a JPEG, from which on it is sent smaller
const [LONGEST_SIDE, PANORAMA] = [1024, [512, 4096]]; // its pixels then, as packing.py has them

/** @import { FileData } from "./ask.js" */
/** @import { Component } from "./early.js" */

export function start(/** @type {Component} */ { element, props, trigger, watch, upload, there }) {
  const slot = props.slot ?? "a";
  const root = make("section", { className: "photo", ariaLabel: "Photo" });
  const part = (/** @type {string} */ name) => root.querySelector(`[data-part="${name}"]`);
  const say = (/** @type {string} */ text) => {
    part("said").textContent = text;
  };
  let latest = 0; // the last photo wins, however long it takes to send

  const inTime = timely(() => latest);

  function send(/** @type {File | undefined} */ file) {
    latest++;
    part("ways").hidePopover();
    if (!file) return say("That was no file: save the photo first, then drop or choose it.");
    say("");
    press(file.name);
    announce(slot, { name: file.name, src: URL.createObjectURL(file) });
    const { name, size, type } = file;
    const sent = (/** @type {{ path: string, url: string }} */ { path, url }) => {
      put({ path, url, orig_name: name, size, mime_type: type, meta: { _type: "gradio.FileData" } });
    };
    const failed = (/** @type {Error} */ error) => {
      announce(slot, null);
      say(`The photo could not be sent: ${error.message}`);
    };
    lighter(file).then(upload).then(inTime(sent), inTime(failed));
  }

  /** The number makes it a change, even if the same photo is sent again. */
  const put = (/** @type {any} */ photo) => {
    props.value = { ...photo, url: `${photo.url?.split("#")[0]}#${++latest}` };
  };

  root.append(document.createRange().createContextualFragment(MARKUP));
  opens(part("own"), part("ways"));
  part("file").addEventListener("change", () => {
    if (part("file").files.length) send(part("file").files[0]);
    part("file").value = ""; // so that the same file can be chosen again
  });
  /** @type {{ name: string, src: string }[]} */
  const given = props.examples;
  const examples = given.map(({ name, src }) => ({ name, src: new URL(src, document.baseURI).href }));
  const buttons = examples.map((example) =>
    exampleButton(example, example.name.replaceAll("_", " "), () => pick(example)),
  );
  function pick(/** @type {{ name: string, src: string }} */ example) {
    latest++;
    say("");
    if (isShown(slot, example.name)) return;
    press(example.name);
    announce(slot, example);
    there.then(inTime(() => trigger("pick", { name: example.name })));
  }
  const own = exampleButton({ name: "", src: "" }, "your last photo", bringBack);
  /** @type {FileData | null} */
  let kept = null; // its file
  function keep(/** @type {FileData} */ photo, /** @type {ImageBitmap} */ picture) {
    if (!kept) {
      buttons.unshift(own);
      part("examples").prepend(own);
    }
    kept = photo;
    own.firstElementChild.src = thumbnailOf(picture);
  }
  function bringBack() {
    latest++;
    say("");
    if (isShown(slot, null)) return;
    press("");
    announce(slot, { name: "", src: own.firstElementChild.src });
    there.then(inTime(() => put(kept)));
  }
  function press(/** @type {string} */ name) {
    for (const button of buttons) {
      button.setAttribute("aria-pressed", String(button.dataset.name === name));
      button.tabIndex = button.dataset.name === name ? 0 : -1;
      if (button.dataset.name === name) requestAnimationFrame(() => bringIntoView(button)); // its place is known then
    }
    if (!buttons.some(({ tabIndex }) => tabIndex === 0) && buttons[0]) buttons[0].tabIndex = 0;
  }
  watch("value", () => {
    if (!props.value) announce(slot, null); // it could not be explained
  });
  press("");
  part("examples").append(...buttons);
  part("examples").addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    const by = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    const at = buttons.indexOf(/** @type {any} */ (document.activeElement));
    if (!by || at < 0) return;
    event.preventDefault();
    buttons[Math.min(buttons.length - 1, Math.max(0, at + by))].focus();
  });
  acceptDrops(root, send);
  acceptPastes(part("paste"), send, say);
  acceptShots(part, send, say);
  addStyle(STYLE, "photo");
  element.replaceChildren(root); // when it can be used
  offer(slot, { root, put, press, keep });
  const linked = new URLSearchParams(location.search).get("example");
  const example = slot === "a" && examples.find(({ name }) => name === linked);
  if (example) announce(slot, example);
}

/** A camera's photo at the size that is shown: what the model sees is smaller still. Others, and odd ones, as they are. */
async function lighter(/** @type {File} */ file) {
  if (file.type !== "image/jpeg" || file.size <= LARGE) return file;
  try {
    const photo = await createImageBitmap(file); // upright
    const { width, height } = photo;
    const [shorter, longer] = [Math.min(width, height), Math.max(width, height)];
    const scale = Math.max(LONGEST_SIDE / longer, Math.min(PANORAMA[0] / shorter, PANORAMA[1] / longer));
    if (scale >= 1) return file;
    const canvas = new OffscreenCanvas(Math.round(width * scale), Math.round(height * scale));
    const context = contextOf(canvas);
    context.imageSmoothingQuality = "high";
    context.drawImage(photo, 0, 0, canvas.width, canvas.height);
    photo.close();
    const content = await canvas.convertToBlob({ type: file.type, quality: 0.85 });
    return new File([content], file.name, { type: file.type });
  } catch {
    return file; // the server has a sentence for it
  }
}

/**
 * @param {{ name: string, src: string }} example
 * @param {string} title
 * @param {() => void} onclick
 */
function exampleButton({ name, src }, title, onclick) {
  const button = make("button", { type: "button", title, onclick }, { name });
  button.append(make("img", { alt: title, draggable: false, fetchPriority: "low", src }));
  return button;
}

/** The middle of a photo, as the server opened it: not every browser can draw a HEIC file. */
function thumbnailOf(/** @type {ImageBitmap} */ picture) {
  const { width, height } = picture;
  const side = Math.min(width, height);
  const canvas = make("canvas", { width: SIDE, height: SIDE });
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(picture, (width - side) / 2, (height - side) / 2, side, side, 0, 0, SIDE, SIDE);
  return canvas.toDataURL("image/jpeg", 0.8);
}

/** Scrolls the row of examples, and never the page. */
function bringIntoView(/** @type {HTMLElement} */ button) {
  const row = button.parentElement;
  if (!row) return;
  const { offsetTop: top, offsetLeft: left, offsetHeight: height, offsetWidth: width } = button;
  const down = top + height > row.scrollTop + row.clientHeight - height || top < row.scrollTop;
  const across = left + width > row.scrollLeft + row.clientWidth - width || left < row.scrollLeft;
  row.scrollTo({ top: down ? top - height : row.scrollTop, left: across ? left - width : row.scrollLeft });
}

/**
 * Anywhere on the page.
 * @param {HTMLElement} box
 * @param {(file: File | undefined) => void} send
 */
function acceptDrops(box, send) {
  window.addEventListener("dragover", (event) => {
    event.preventDefault();
    box.classList.add("over");
  });
  window.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) box.classList.remove("over");
  });
  window.addEventListener("drop", (event) => {
    event.preventDefault();
    box.classList.remove("over");
    send(event.dataTransfer?.files[0]);
  });
}

/**
 * @param {HTMLElement} button
 * @param {(file: File | undefined) => void} send
 * @param {(text: string) => void} say
 */
function acceptPastes(button, send, say) {
  window.addEventListener("paste", (event) => {
    const files = event.clipboardData?.files;
    if (!files?.length && /** @type {Element} */ (event.target).matches?.("input, textarea")) return; // text for that field
    send(files?.[0]);
  });
  button.addEventListener("click", async () => {
    try {
      for (const item of await navigator.clipboard.read()) {
        const type = item.types.find((type) => type.startsWith("image/"));
        if (type) return send(new File([await item.getType(type)], `pasted.${type.slice(6)}`, { type }));
      }
      say("There is no picture in the clipboard: copy one first.");
    } catch {
      say("The browser does not let the page read the clipboard: press Ctrl + V instead.");
    }
  });
}

/**
 * Photos from the camera.
 * @param {(name: string) => any} part
 * @param {(file: File | undefined) => void} send
 * @param {(text: string) => void} say
 */
function acceptShots(part, send, say) {
  const [shutter, finder] = [part("shutter"), part("finder")];
  /** @type {MediaStream | null} */
  let camera = null;
  const close = () => {
    for (const track of camera?.getTracks() ?? []) track.stop();
    camera = null;
    shutter.close();
  };
  part("camera").addEventListener("click", async () => {
    try {
      camera = await navigator.mediaDevices.getUserMedia({
        video: { facingMode: "environment", width: { ideal: 1920 } },
      });
      finder.srcObject = camera;
      shutter.showModal();
    } catch {
      say("The camera cannot be used: allow it in the browser, or choose a photo.");
    }
  });
  shutter.addEventListener("cancel", close);
  part("cancel").addEventListener("click", close);
  part("take").addEventListener("click", () => {
    const shot = document.createElement("canvas");
    [shot.width, shot.height] = [finder.videoWidth, finder.videoHeight];
    shot.getContext("2d")?.drawImage(finder, 0, 0);
    close();
    shot.toBlob((blob) => blob && send(new File([blob], "photo.jpg", { type: "image/jpeg" })), "image/jpeg", 0.92);
  });
}
