// The story that the page opens with: the lights go down, and the layers come in with their words.

/** @import { Context } from "./dom.js" */

const TAKES = 3200; // milliseconds

/** Plays once, where motion is wanted and the visitor came without a link; any touch ends it. */
export function playStory(/** @type {Context} */ { store, root }, /** @type {boolean} */ linked) {
  const { explanation } = store.get();
  if (!explanation || linked || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const [ended, began] = [new AbortController(), performance.now()];
  const end = () => {
    ended.abort();
    store.set({ story: null });
  };
  for (const touch of ["pointerdown", "keydown", "wheel"])
    window.addEventListener(touch, end, { signal: ended.signal, passive: true });
  const step = (/** @type {number} */ now) => {
    if (ended.signal.aborted) return;
    if (now - began >= TAKES || store.get().explanation !== explanation || !root.isConnected) return end();
    store.set({ story: Math.max(0, now - began) / TAKES });
    requestAnimationFrame(step);
  };
  store.set({ story: 0 });
  requestAnimationFrame(step);
}
