// What is said above the stage: a teacher's line, a link's photo that is not in it, a model on its way.

import { cancelLoad } from "../loading.js";

/** @type {import("../dom.js").Panel} */
export const notices = {
  markup: `
    <p class="card notice" data-part="task" hidden><span class="quiet">Note:</span> <span data-part="task-text"></span></p>
    <p class="card notice" data-part="photo-missing" role="status" hidden><span>The photo of this link stayed with its sender: <button type="button" class="link" data-part="choose-it">choose it here</button>, or look at this example.</span></p>
    <div class="card notice" data-part="loading" role="status" hidden>
      <span data-part="loading-text"></span>
      <progress data-part="loading-share" max="1" aria-label="Loaded"></progress>
      <button type="button" class="link" data-part="cancel">Cancel</button>
    </div>`,

  style: `
    .notice { display: flex; gap: 12px; align-items: center; }
    .notice[data-part="loading"] { position: fixed; z-index: 6; top: 56px; left: 50%; translate: -50% 0; width: max-content; max-width: calc(100vw - 24px); border: 1px solid var(--line); background: var(--background-fill-primary); box-shadow: 0 12px 40px rgba(0, 0, 0, 0.35); }
    .notice progress { flex: 1 0 90px; width: 12em; height: 6px; appearance: none; border: 0; border-radius: 3px; overflow: hidden; background: var(--line); }
    .notice progress::-webkit-progress-bar { background: none; }
    .notice progress::-webkit-progress-value { background: var(--accent); }
    .notice progress::-moz-progress-bar { background: var(--accent); }
    .notice progress:indeterminate { background: linear-gradient(to right, var(--line) 30%, var(--accent), var(--line) 70%) 0 / 300% 100%; animation: 1.4s linear infinite on-its-way; }
    .notice progress:indeterminate::-moz-progress-bar { background: none; }
    @keyframes on-its-way { from { background-position: 100% 0; } to { background-position: -50% 0; } }
    @media (prefers-reduced-motion: reduce) { .notice progress { animation: none !important; } }`,

  start({ part, store, root, ask }) {
    store.show(({ task, photoMissing }) => {
      part("task").hidden = !task;
      part("task-text").textContent = task;
      part("photo-missing").hidden = !photoMissing;
    });
    store.show(({ loading }) => {
      part("loading").hidden = !loading;
      if (!loading) return;
      part("loading-text").textContent = loading.text;
      if (loading.share === null) part("loading-share").removeAttribute("value");
      else part("loading-share").value = loading.share;
    });
    part("choose-it").addEventListener("click", () => {
      /** @type {HTMLElement | null} */ (root.querySelector(".photo [data-part=file]"))?.click();
    });
    part("cancel").addEventListener("click", () => {
      cancelLoad(ask);
      store.set({ loading: null });
    });
  },
};
