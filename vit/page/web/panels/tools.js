// Present, help, and share.

import { opens } from "../dom.js";

/** @type {import("../dom.js").Panel} */
export const tools = {
  markup: `
    <button type="button" class="pill" data-part="present" title="For a projector: p">Present</button>
    <button type="button" class="pill" data-part="help" aria-label="Help">?</button>
    <button type="button" class="pill main" data-part="share">Share</button>
    <div class="help" popover data-part="help-text" role="dialog" aria-label="Help">
      <p>Lit is what the model reads. <span class="with-keys">Point at a patch for its share; click it</span><span class="by-touch">Tap a patch for its share; tap again</span> to see what the patch itself looks at.</p>
      <p class="with-keys"><kbd>←</kbd> <kbd>→</kbd> layer · <kbd>↑</kbd> <kbd>↓</kbd> head · <kbd>Shift</kbd> + arrows patch · <kbd>Enter</kbd> pin · <kbd>Esc</kbd> back · <kbd>p</kbd> present</p>
      <p>Your photo goes to this server only, and is deleted within the hour.</p>
    </div>
    <dialog class="share" data-part="share-dialog" aria-label="Share"></dialog>`,

  style: `
    .pill.main { background: var(--primary-700); border-color: var(--primary-700); color: white; }
    .pill.main:hover { background: var(--primary-800); }
    .help:popover-open { display: grid; gap: 10px; }
    kbd { padding: 0 0.35em; border: 1px solid var(--line); border-radius: 5px; font-family: inherit; }
    @container explorer (max-width: 639px) { .pill[data-part="present"] { display: none; } }
    .by-touch { display: none; }
    @media (pointer: coarse) { .by-touch { display: inline; } .with-keys { display: none; } .pill { padding-block: 0.5em; } }`,

  start(context) {
    const { part, store, show } = context;
    opens(part("help"), part("help-text"));
    part("present").addEventListener("click", () => store.set({ presenting: !store.get().presenting }));
    part("share").addEventListener("click", async () => {
      const { share } = await import("../modes/share.js");
      share(context, part("share-dialog"));
    });
    show(({ presenting }) => {
      part("share").disabled = false;
      part("present").textContent = presenting ? "End" : "Present";
    });
    part("share").disabled = true;
  },
};
