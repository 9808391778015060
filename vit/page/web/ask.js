// All that the server is asked. An answer that comes too late is dropped here, and nowhere else.

import { parse } from "./data/safetensors.js";

/** @import { File } from "./data/safetensors.js" */
/** @typedef {{ url: string, orig_name: string }} FileData */
/** @typedef {{ asked: { kind: string, number: number }, files: FileData[], done: boolean }} Answer  see explorer/__init__.py */

const ALWAYS_HEARD = ["save_arrays"]; // what a visitor waits for, even if another photo is shown by then

/**
 * @param {(kind: string, data: object) => void} trigger  the events of the component
 * @param {() => string | null} wanted  the address of the explanation that is to be shown
 */
export function createAsk(trigger, wanted) {
  /** @type {Map<string, { number: number, heard: number, onFile: (file: FileData) => void, resolve: (files: FileData[]) => void }>} */
  const open = new Map(); // the last question of each kind
  let count = 0;

  const inTime = timely(wanted);

  return {
    /**
     * The files that answer a question, none where that failed. A promise that stays open where the answer is late, or
     * the same kind of question was asked again.
     * @param {string} kind
     * @param {object} data
     * @param {(file: FileData) => void} onFile  called with each as it comes
     * @returns {Promise<FileData[]>}
     */
    ask(kind, data = {}, onFile = () => {}) {
      const number = ++count;
      return new Promise((resolve) => {
        const [each, all] = ALWAYS_HEARD.includes(kind) ? [onFile, resolve] : [inTime(onFile), inTime(resolve)];
        open.set(kind, { number, heard: 0, onFile: each, resolve: all });
        trigger(kind, { ...data, kind, number });
      });
    },

    /** What the server said; its files grow from one answer to the next. */
    answer(/** @type {Answer} */ { asked, files, done }) {
      const question = open.get(asked.kind);
      if (question?.number !== asked.number) return;
      for (; question.heard < files.length; question.heard++) question.onFile(files[question.heard]);
      if (!done) return;
      open.delete(asked.kind);
      question.resolve(files);
    },

    /**
     * What is made of a file in the safetensors format; a promise that stays open where it is late.
     * @template Made
     * @param {string} url
     * @param {(file: File) => Made | Promise<Made>} make
     * @returns {Promise<Made>}
     */
    read(url, make) {
      return new Promise((resolve, reject) => {
        download(url).then(make).then(inTime(resolve), inTime(reject));
      });
    },
  };
}

/** @typedef {ReturnType<typeof createAsk>} Ask */

/**
 * Makes functions that are not called any more once something else is wanted.
 * @param {() => unknown} wanted
 */
export function timely(wanted) {
  /**
   * @template T
   * @param {(value: T) => void} f
   */
  return (f) => {
    const about = wanted();
    return (/** @type {T} */ value) => {
      if (wanted() === about) f(value);
    };
  };
}

async function download(/** @type {string} */ url) {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`The server answered ${answer.status}.`);
  return parse(await answer.arrayBuffer());
}
