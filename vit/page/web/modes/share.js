// What visitors take away: a link with a line of text and a code to photograph, pictures, and arrays.

import { byClass, layer, ofWholeModel, pinned } from "../data/shown.js";
import { addStyle, saveAs } from "../dom.js";
import { figureName, sheetFigure, viewFigure } from "../draw/figure.js";
import { LONGEST_TASK, words } from "../view.js";
import { qrCode } from "./qr.js";

/** @import { Explained } from "../data/shown.js" */
/** @import { Context } from "../dom.js" */

const MARKUP = `
  <div class="share-head"><h2>Share</h2><button type="button" class="pill" data-part="close">Close</button></div>
  <div class="share-body">
    <div>
      <label>A line for the one who opens it <input type="text" data-part="task-field" placeholder="What does head 2 look for?"></label>
      <label>Link <input type="text" readonly data-part="link"></label>
      <p class="share-ways"><button type="button" class="pill main" data-part="copy-link">Copy</button> <span data-part="link-text" role="status"></span></p>
      <h3>Save</h3>
      <p class="share-ways">
        <button type="button" class="pill" data-part="save-view">Picture</button>
        <button type="button" class="pill" data-part="save-sheet">All layers</button>
        <button type="button" class="pill" data-part="save-arrays">Arrays (.npz)</button>
      </p>
    </div>
    <canvas data-part="qr" role="img" aria-label="The link as a QR code"></canvas>
  </div>`;

const STYLE = `
  .share { max-width: min(94vw, 44em); width: 100%; max-height: 92vh; margin: auto !important; padding: 18px 20px; border: 1px solid var(--line); border-radius: 14px; background: var(--background-fill-primary); color: var(--body-text-color); }
  .share::backdrop { background: rgba(0, 0, 0, 0.6); }
  .share-head { display: flex; justify-content: space-between; align-items: center; margin-bottom: 12px; }
  .share h2 { font-size: 1.3em; }
  .share-body { display: flex; flex-wrap: wrap; gap: 20px; }
  .share-body > div { flex: 1 1 18em; display: grid; gap: 10px; align-content: start; min-width: 0; }
  .share label { display: grid; gap: 3px; font-size: 0.9em; }
  .share input { width: 100%; padding: 7px 9px; border: 1px solid var(--line); border-radius: 8px; background: var(--body-background-fill); }
  .share-ways { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; }
  .share canvas { width: min(230px, 60vw); height: min(230px, 60vw); flex: none; margin: auto; image-rendering: pixelated; border-radius: 8px; background: white; }`;

/** Opens the dialog. */
export function share(/** @type {Context} */ { store, ask: { ask } }, /** @type {HTMLDialogElement} */ dialog) {
  const state = () => /** @type {Explained} */ (store.get());
  const part = (/** @type {string} */ name) => /** @type {any} */ (dialog.querySelector(`[data-part="${name}"]`));
  const linkOf = (/** @type {string} */ task) =>
    `${location.origin}${location.pathname}?${words({ ...state(), task: task.trim() })}`;

  if (!dialog.firstChild) {
    addStyle(STYLE);
    dialog.append(document.createRange().createContextualFragment(MARKUP));
    part("task-field").maxLength = LONGEST_TASK;
    part("close").onclick = () => dialog.close();
    part("task-field").oninput = update;
    part("copy-link").onclick = copy;
    part("save-view").onclick = () => {
      const what = ofWholeModel(state()) ? "" : `layer-${layer(state()) + 1}`;
      savePicture(viewFigure(state()), figureName(state(), what));
    };
    part("save-sheet").onclick = () => savePicture(sheetFigure(state()), figureName(state(), "all-layers"));
    part("save-arrays").onclick = saveArrays;
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog) dialog.close();
    });
  }
  part("task-field").value = state().task;
  update();
  if (!dialog.open) dialog.showModal();

  function update() {
    const link = linkOf(part("task-field").value);
    part("link").value = link;
    part("link-text").textContent = state().explanation.example
      ? ""
      : "Your own photo is not in it: whoever opens it chooses one.";
    drawCode(part("qr"), link);
  }

  async function copy() {
    const kept = state().explanation.example ? "" : " Your own photo is not in it: whoever opens it chooses one first.";
    part("link").select();
    const copied = await navigator.clipboard.writeText(part("link").value).then(
      () => "Copied.",
      () => "Copy this link.",
    );
    part("link-text").textContent = copied + kept;
    store.set({ said: copied + kept });
  }

  async function saveArrays() {
    const { explanation, saving, wanted, chosen, against, head } = state();
    if (saving || wanted !== explanation.url) return;
    store.set({ saving: true });
    part("save-arrays").setAttribute("aria-disabled", "true");
    const index = (/** @type {number | null} */ rank) =>
      rank === null ? null : (explanation.predictions[rank]?.index ?? null);
    const files = await ask("save_arrays", {
      label: index(chosen),
      against: byClass(state()) ? index(against) : null,
      heads: head,
      patch: pinned(state()),
    });
    store.set({ saving: false });
    part("save-arrays").setAttribute("aria-disabled", "false");
    for (const { url, orig_name } of files) saveAs(url, orig_name);
  }
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {string} link
 */
function drawCode(canvas, link) {
  const code = qrCode(link);
  canvas.hidden = !code;
  if (!code) return; // longer than any code holds
  const [margin, scale] = [4, 6];
  canvas.width = canvas.height = (code.length + 2 * margin) * scale;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.fillStyle = "white";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = "black";
  for (const [row, cells] of code.entries())
    for (const [column, dark] of cells.entries())
      if (dark) context.fillRect((column + margin) * scale, (row + margin) * scale, scale, scale);
}

/**
 * @param {OffscreenCanvas | null} drawn
 * @param {string} name
 */
async function savePicture(drawn, name) {
  if (!drawn) return;
  const url = URL.createObjectURL(await drawn.convertToBlob({ type: "image/png" }));
  saveAs(url, name);
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
