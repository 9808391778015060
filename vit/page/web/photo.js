// The photo box: whatever way a photo comes, it is sent to the server, and becomes the component's value.

import { timely } from "./ask.js";
import { addStyle, make } from "./dom.js";

const MARKUP = `
  <h1>ViT Explorer</h1>
  <p class="about">What a Vision Transformer predicts, and what it looks at.</p>
  <div class="drop" data-part="drop">
    <p>Drop a photo here, or</p>
    <div class="ways">
      <label class="way"><input type="file" accept="image/*" data-part="file"><span>Choose</span></label>
      <button type="button" class="way" data-part="paste">Paste</button>
      <button type="button" class="way" data-part="camera">Camera</button>
    </div>
    <p class="said" data-part="said" role="status"></p>
  </div>
  <div class="examples" data-part="examples"></div>
  <dialog data-part="shutter" aria-label="Take a photo">
    <video data-part="finder" autoplay playsinline muted></video>
    <div class="ways">
      <button type="button" class="way" data-part="take">Take the photo</button>
      <button type="button" class="way" data-part="cancel">Cancel</button>
    </div>
  </dialog>`;

const STYLE = `
  --accent: color-mix(in srgb, var(--primary-500) 80%, var(--body-text-color)); color: var(--body-text-color); font-size: 14px;
  p { margin: 0; }
  h1 { margin: 0; font-size: 24px; font-weight: 700; }
  .about { margin: 2px 0 12px; color: var(--body-text-color-subdued); }
  .drop { padding: 18px 10px; text-align: center; border: 2px dashed var(--border-color-primary); border-radius: 10px; background: var(--background-fill-secondary); }
  .drop.over { border-color: var(--accent); background: color-mix(in srgb, var(--primary-500) 15%, var(--background-fill-primary)); }
  .said:not(:empty) { margin-top: 10px; }
  .ways { display: flex; flex-wrap: wrap; justify-content: center; gap: 6px; margin-top: 8px; }
  button, .way { margin: 0; }
  .way { position: relative; padding: 6px 12px; font-size: 14px; line-height: 20px; font-weight: 400; cursor: pointer; color: var(--body-text-color); border: 1px solid var(--border-color-primary); border-radius: 7px; background: var(--background-fill-primary); }
  .way:hover { border-color: var(--accent); }
  .way input { position: absolute; inset: 0; width: 100%; height: 100%; opacity: 0; cursor: pointer; font-size: 0; }
  .way:focus-within, .way:focus-visible, .examples button:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
  .examples { display: grid; grid-template-columns: repeat(auto-fill, minmax(64px, 1fr)); gap: 6px; margin-top: 12px; }
  .examples button { padding: 0; border: 2px solid transparent; border-radius: 8px; cursor: pointer; line-height: 0; }
  .examples button:hover { border-color: var(--accent); }
  .examples img { width: 100%; aspect-ratio: 1; object-fit: cover; border-radius: 6px; margin: 0; }
  dialog { max-width: min(92vw, 720px); padding: 14px; border: 1px solid var(--border-color-primary); border-radius: 12px; background: var(--background-fill-primary); }
  dialog::backdrop { background: rgba(0, 0, 0, 0.6); }
  video { width: 100%; border-radius: 8px; background: black; }
  @media (max-width: 1000px) {
    .examples { display: flex; overflow-x: auto; padding-bottom: 6px; }
    .examples button { flex: none; width: 72px; }
    .way { padding: 10px 16px; }
  }`;

/**
 * @typedef {object} Component  What Gradio hands to a script.
 * @property {HTMLElement} element
 * @property {{ value: any, examples: { name: string, src: string }[] }} props
 * @property {(event: string, data: object) => void} trigger
 * @property {(file: File) => Promise<{ path: string, url: string }>} upload
 */

export function start(/** @type {Component} */ { element, props, trigger, upload }) {
  const root = make("section", { className: "photo", ariaLabel: "Photo" });
  const part = (/** @type {string} */ name) => root.querySelector(`[data-part="${name}"]`);
  const say = (/** @type {string} */ text) => {
    part("said").textContent = text;
  };
  let latest = 0; // the last photo wins, however long it takes to send

  const inTime = timely(() => latest);

  function send(/** @type {File | undefined} */ file) {
    latest++;
    if (!file) return say("That was no file: save the photo first, then drop or choose it.");
    say("Sending …");
    const { name, size, type } = file;
    const sent = (/** @type {{ path: string, url: string }} */ { path, url }) => {
      // The number makes it a change, even if the same photo is sent again.
      const address = `${url}#${latest}`;
      props.value = { path, url: address, orig_name: name, size, mime_type: type, meta: { _type: "gradio.FileData" } };
      say("");
    };
    upload(file).then(
      inTime(sent),
      inTime((/** @type {Error} */ error) => say(`The photo could not be sent: ${error.message}`)),
    );
  }

  root.append(document.createRange().createContextualFragment(MARKUP));
  part("file").addEventListener("change", () => {
    if (part("file").files.length) send(part("file").files[0]);
    part("file").value = ""; // so that the same file can be chosen again
  });
  const pick = (/** @type {string} */ name) => {
    latest++;
    say("");
    trigger("pick", { name });
  };
  part("examples").append(...props.examples.map((example) => exampleButton(example, pick)));
  acceptDrops(part("drop"), send);
  acceptPastes(part("paste"), send, say);
  acceptShots(part, send, say);
  addStyle(STYLE, "photo");
  element.replaceChildren(root); // when it can be used
}

/**
 * @param {{ name: string, src: string }} example
 * @param {(name: string) => void} pick
 */
function exampleButton({ name, src }, pick) {
  const title = name.replaceAll("_", " ");
  const button = make("button", { type: "button", title, onclick: () => pick(name) }, { name });
  button.append(make("img", { alt: title, draggable: false, src }));
  return button;
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
