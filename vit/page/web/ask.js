// All that the server is asked. An answer that comes too late is dropped here, and nowhere else.

import { parse } from "./data/safetensors.js";

/** @import { File } from "./data/safetensors.js" */
/** @typedef {{ url: string, orig_name: string, path?: string }} FileData */
/** @typedef {{ share: number, text: string }} Progress */
/** @typedef {{ asked: { kind: string, number: number }, files: FileData[], progress: Progress | null, done: boolean }} Answer  see explorer/__init__.py */

const ALWAYS_HEARD = ["save_arrays", "choose_model", "follow_link"]; // what a visitor waits for, even if another photo is shown by then

const AT_ONCE = ["choose_model", "follow_link", "ask_curves"]; // the others wait for the last of their kind to be answered
const PATIENCE = 60_000; // milliseconds, after which an answer is not waited for any more
const NUDGE = 1000; // milliseconds without a word, after which Gradio is nudged; then twice as long, and so on

/**
 * @param {(kind: string, data: object) => void} trigger  the events of the component
 * @param {() => string | null} wanted  the address of the explanation that is to be shown
 * @param {() => boolean} isWaiting  whether a photo is on its way, which is no question
 */
export function createAsk(trigger, wanted, isWaiting) {
  /** @type {Map<string, { number: number, heard: number, onFile: (file: FileData) => void, onProgress: (progress: Progress) => void, resolve: (files: FileData[]) => void }>} */
  const open = new Map(); // the last question of each kind
  /** @type {Map<string, { number: number, since: number }>} */
  const running = new Map(); // what the server is at, by kind
  /** @type {Map<string, { kind: string, number: number }>} */
  const waiting = new Map(); // the last question of a kind that waits: Gradio would ask it with the first one's words
  let count = 0;
  let nudging = 0;

  const inTime = timely(wanted);

  /**
   * Gradio's client closes its connection for answers when the last is there, even if a question went out just before:
   * that one's answer comes when another opens it again.
   */
  function listen(wait = NUDGE) {
    clearTimeout(nudging);
    if (!(open.size || isWaiting()) || wait > PATIENCE) return;
    nudging = setTimeout(() => {
      trigger("nudge", {});
      listen(2 * wait);
    }, wait);
  }

  function send(/** @type {{ kind: string, number: number }} */ question) {
    const { kind, number } = question;
    const before = running.get(kind);
    if (before && Date.now() - before.since < PATIENCE && !AT_ONCE.includes(kind)) return waiting.set(kind, question);
    running.set(kind, { number, since: Date.now() });
    trigger(kind, question);
  }

  function sendNext(/** @type {string} */ kind) {
    running.delete(kind);
    const next = waiting.get(kind);
    waiting.delete(kind);
    if (next) send(next);
  }

  return {
    /** What waits for Gradio hears from it. */
    listen: () => listen(),

    /**
     * The files that answer a question, none where that failed. A promise that stays open where the answer is late, or
     * the same kind of question was asked again.
     * @param {string} kind
     * @param {object} data
     * @param {(file: FileData) => void} onFile  called with each as it comes
     * @param {(progress: Progress) => void} onProgress
     * @returns {Promise<FileData[]>}
     */
    ask(kind, data = {}, onFile = () => {}, onProgress = () => {}) {
      const number = ++count;
      return new Promise((resolve) => {
        const [each, all] = ALWAYS_HEARD.includes(kind) ? [onFile, resolve] : [inTime(onFile), inTime(resolve)];
        open.set(kind, { number, heard: 0, onFile: each, onProgress, resolve: all });
        send({ ...data, kind, number });
        listen();
      });
    },

    /** Ends what was asked: its answer is not waited for any more. */
    cancel(/** @type {string} */ event, /** @type {string[]} */ ...kinds) {
      for (const kind of kinds) {
        open.get(kind)?.resolve([]);
        open.delete(kind);
        running.delete(kind);
      }
      trigger(event, {});
      listen();
    },

    /** What the server said; its files grow from one answer to the next. */
    answer(/** @type {Answer} */ { asked, files, progress, done }) {
      if (done && running.get(asked.kind)?.number === asked.number) sendNext(asked.kind);
      const question = open.get(asked.kind);
      if (question?.number !== asked.number) return;
      if (progress) question.onProgress(progress);
      for (; question.heard < files.length; question.heard++) question.onFile(files[question.heard]);
      if (done) {
        open.delete(asked.kind);
        question.resolve(files);
      }
      listen();
    },

    /**
     * What is made of a file in the safetensors format; a promise that stays open where it is late.
     * @template Made
     * @param {string} url
     * @param {(file: File) => Made | Promise<Made>} make
     * @param {AbortSignal} [signal]  ends it: the network is needed for something else
     * @returns {Promise<Made>}
     */
    read(url, make, signal) {
      return new Promise((resolve, reject) => {
        download(url, signal).then(make).then(inTime(resolve), inTime(reject));
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

async function download(/** @type {string} */ url, /** @type {AbortSignal | undefined} */ signal) {
  const answer = await fetch(url, { signal });
  if (!answer.ok) throw new Error(`The server answered ${answer.status}.`);
  return parse(await answer.arrayBuffer());
}
