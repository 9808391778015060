// What is said above the stage: a teacher's line, a link's photo that is not in it, a model on its way.

/** @type {import("../dom.js").Panel} */
export const notices = {
  markup: `
    <p class="card notice" data-part="task" hidden><span class="quiet">To do:</span> <span data-part="task-text"></span></p>
    <p class="card notice" data-part="photo-missing" role="status" hidden>The photo of this link is not in it: choose it again, or look at this one.</p>
    <div class="card notice" data-part="loading" role="status" hidden>
      <span data-part="loading-text"></span>
      <progress data-part="loading-share" max="1" aria-label="Loaded"></progress>
      <button type="button" class="link" data-part="cancel">Cancel</button>
    </div>`,

  style: `
    .notice { display: flex; gap: 12px; align-items: center; }
    .notice progress { flex: 1; min-width: 60px; max-width: 320px; accent-color: var(--accent); }`,

  start({ part, store, ask: { ask } }) {
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
    part("cancel").addEventListener("click", () => {
      ask("cancel_load");
      store.set({ loading: null });
    });
  },
};
