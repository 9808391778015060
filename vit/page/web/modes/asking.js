// What a mode asks of the server: again whenever its question changes, and the last question counts.

/** @import { Explained } from "../data/shown.js" */
/** @import { File } from "../data/safetensors.js" */
/** @import { Context } from "../dom.js" */

/**
 * Keeps the answer to a question in `state.told`.
 * @param {Context} context
 * @param {string} kind
 * @param {(state: Explained) => object | null} question  null where there is nothing to ask
 * @param {(content: File, url: string) => any} make  what is made of an answer
 */
export function keepAsking({ store, ask: { ask, read }, show }, kind, question, make = (content) => content) {
  let last = "";
  show((state) => {
    const asked = question(state);
    const { url } = state.explanation;
    const key = JSON.stringify([url, asked]);
    if (!asked || state.wanted !== url || key === last) return;
    last = key;
    ask(kind, asked).then(async ([file]) => {
      const answer = file && (await read(file.url, (content) => make(content, file.url)));
      if (answer && key === last) store.set({ told: { ...store.get().told, [kind]: { ...answer, key } } });
    });
  });
}
