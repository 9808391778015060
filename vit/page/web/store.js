// All that changes, in one object: what is shown follows from it.

import { recording, unchanged } from "./data/derive.js";

/**
 * @template {object} State
 * @param {State} initial
 * @param {(flush: () => void) => unknown} later  when to tell of changes: all of a frame at once
 */
export function createStore(initial, later = requestAnimationFrame) {
  let state = initial;
  let waiting = false;
  /** @type {{ isDue: () => boolean, run: () => void }[]} */
  const watchers = [];

  function flush() {
    waiting = false;
    for (const watcher of watchers) if (watcher.isDue()) watcher.run();
  }

  function wake() {
    if (waiting) return;
    waiting = true;
    later(flush);
  }

  return {
    get: () => state,

    set(/** @type {Partial<State>} */ changes) {
      const [before, after] = [state, { ...state, ...changes }];
      if (Object.keys(changes).every((key) => Object.is(Reflect.get(before, key), Reflect.get(after, key)))) return;
      state = after;
      wake();
    },

    /**
     * Calls a function in the frame after one of these keys has changed.
     * @param {(keyof State)[]} keys
     * @param {(state: State) => void} f
     */
    watch(keys, f) {
      let seen = state;
      watchers.push({
        isDue: () => keys.some((key) => !Object.is(seen[key], state[key])),
        run() {
          seen = state;
          f(state);
        },
      });
    },

    /**
     * Calls a function in the next frame, and in each frame after something that it read of the state has changed.
     * Returns how to call it again for other reasons.
     * @param {(state: State) => void} f
     */
    show(f) {
      /** @type {Map<string, unknown> | null} */
      let read = null;
      watchers.push({
        isDue: () => !read || !unchanged(read, state),
        run() {
          read = new Map();
          f(recording(state, read));
        },
      });
      wake();
      return () => {
        read = null;
        wake();
      };
    },
  };
}
