// Present, help, and share.

import { opens } from "../dom.js";

/** @type {import("../dom.js").Panel} */
export const tools = {
  markup: `
    <button type="button" class="pill" data-part="present" title="For a projector: p">Present</button>
    <button type="button" class="pill" data-part="help" aria-label="Help">?</button>
    <button type="button" class="pill main" data-part="share">Share</button>
    <div class="help" popover data-part="help-text" role="dialog" aria-label="Help">
      <p>Lit is what the model reads. Point at a patch for its share; click it to see what the patch itself looks at.</p>
      <p class="with-keys"><kbd>←</kbd> <kbd>→</kbd> layer · <kbd>↑</kbd> <kbd>↓</kbd> head · <kbd>Shift</kbd> + arrows patch · <kbd>Enter</kbd> pin · <kbd>Esc</kbd> back · <kbd>p</kbd> present</p>
      <p>Your photo goes to this server only, and is deleted within the hour.</p>
    </div>
    <dialog class="share" data-part="share-dialog" aria-label="Share"></dialog>`,

  style: `
    .pill.main { background: var(--primary-700); border-color: var(--primary-700); color: white; }
    .pill.main:hover { background: var(--primary-800); }
    .help:popover-open { display: grid; gap: 10px; }
    kbd { padding: 0 0.35em; border: 1px solid var(--line); border-radius: 5px; font-family: inherit; }
    @media (pointer: coarse) { .with-keys { display: none; } .pill { padding: 0.6em 1.1em; } }`,

  start(context) {
    const { part, store, show } = context;
    opens(part("help"), part("help-text"));
    part("present").addEventListener("click", () => store.set({ presenting: true }));
    part("share").addEventListener("click", async () => {
      const { share } = await import("../modes/share.js");
      share(context, part("share-dialog"));
    });
    show(() => {
      part("share").disabled = false;
    });
    part("share").disabled = true;
  },
};
