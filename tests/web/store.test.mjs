// The store tells of changes once a frame; what is asked is heard in time, or not at all.

import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { createAsk } from "../../vit/page/web/ask.js";
import { createStore } from "../../vit/page/web/store.js";

mock.timers.enable({ apis: ["setTimeout"] }); // a minute's nudges are not waited for

function frames() {
  const waiting = [];
  const next = () => {
    for (const f of waiting.splice(0)) f();
  };
  return { later: (f) => waiting.push(f), next };
}

test("watchers hear of their keys, once for all changes of a frame", () => {
  const { later, next } = frames();
  const store = createStore({ layer: 0, head: 0 }, later);
  const heard = [];
  store.watch(["layer"], ({ layer }) => heard.push(layer));
  store.set({ layer: 1 });
  store.set({ layer: 2, head: 1 });
  assert.equal(store.get().layer, 2);
  next();
  store.set({ head: 2 });
  store.set({ layer: 2 });
  next();
  assert.deepEqual(heard, [2]);
});

test("what is shown follows what it read, and nothing else", () => {
  const { later, next } = frames();
  const store = createStore({ map: "a", layer: 0, hovered: null }, later);
  const shown = [];
  const again = store.show(({ map, layer }) => shown.push(map === "b" ? "b" : `${map}${layer}`));
  next();
  store.set({ hovered: 3 });
  next();
  store.set({ layer: 1 });
  next();
  assert.deepEqual(shown, ["a0", "a1"]);
  again();
  next();
  assert.deepEqual(shown, ["a0", "a1", "a1"]);
});

function asker() {
  const asked = [];
  const state = { wanted: "one", waiting: false };
  const ask = createAsk(
    (kind, data) => asked.push({ kind, ...data }),
    () => state.wanted,
    () => state.waiting,
  );
  const answer = (number, files, done = true) =>
    ask.answer({ asked: asked[number], files: files.map((url) => ({ url })), done });
  return { ...ask, asked, answer, state };
}

/** What a promise has come to by now: its value, or "open". */
const now = (promise) => Promise.race([promise, new Promise((done) => setImmediate(done, "open"))]);

test("files are heard as they come, each once", async () => {
  const { ask, answer } = asker();
  const heard = [];
  const files = ask("ask_maps", {}, ({ url }) => heard.push(url));
  answer(0, ["rollout"], false);
  answer(0, ["rollout", "class-0"], false);
  assert.equal(await now(files), "open");
  answer(0, ["rollout", "class-0"]);
  assert.deepEqual(heard, ["rollout", "class-0"]);
  assert.equal((await now(files)).length, 2);
});

test("an answer about another photo is dropped", async () => {
  const { ask, answer, state } = asker();
  const heard = [];
  const files = ask("ask_maps", {}, ({ url }) => heard.push(url));
  state.wanted = "two";
  answer(0, ["rollout"]);
  assert.equal(await now(files), "open");
  assert.deepEqual(heard, []);
});

test("an answer to a question that was asked again is dropped", async () => {
  const { ask, answer } = asker();
  const [first, second] = [ask("ask_patch", { patch: 1 }), ask("ask_patch", { patch: 2 })];
  answer(0, ["one"]);
  answer(1, ["two"]);
  assert.equal(await now(first), "open");
  assert.deepEqual(await now(second), [{ url: "two" }]);
});

test("a question waits for the last of its kind to be answered, and only the latest is asked then", () => {
  const { ask, answer, asked } = asker();
  for (const patch of [1, 2, 3]) ask("ask_patch", { patch });
  ask("ask_maps");
  assert.deepEqual(
    asked.map(({ kind, patch }) => [kind, patch]),
    [
      ["ask_patch", 1],
      ["ask_maps", undefined],
    ],
  );
  answer(0, ["one"], false);
  assert.equal(asked.length, 2);
  answer(0, ["one"]);
  assert.deepEqual([asked.length, asked[2].patch], [3, 3]);
});

test("arrays are handed out even if another photo is shown by then", async () => {
  const { ask, answer, state } = asker();
  const files = ask("save_arrays");
  state.wanted = "two";
  answer(0, ["cat.npz"]);
  assert.deepEqual(await now(files), [{ url: "cat.npz" }]);
});

test("a file that comes too late is dropped, and one that does not come is told", async (context) => {
  const { read, state } = asker();
  context.mock.method(globalThis, "fetch", async () => ({ ok: false, status: 404 }));
  await assert.rejects(
    read("gone", (file) => file),
    /The server answered 404/,
  );
  const late = read("gone", (file) => file);
  state.wanted = "two";
  assert.equal(await now(late), "open");
});

test("Gradio is nudged while something is waited for, less and less often", () => {
  const { ask, answer, asked, cancel, listen, state } = asker();
  const nudges = () => asked.filter(({ kind }) => kind === "nudge").length;
  ask("ask_maps");
  mock.timers.tick(999);
  assert.equal(nudges(), 0);
  mock.timers.tick(1);
  assert.equal(nudges(), 1);
  mock.timers.tick(2000);
  assert.equal(nudges(), 2);
  answer(0, [], false); // a word: it is patient again
  mock.timers.tick(1000);
  assert.equal(nudges(), 3);
  answer(0, []);
  mock.timers.tick(100_000);
  assert.equal(nudges(), 3);
  ask("ask_curves");
  cancel("cancel_curves", "ask_curves"); // which nobody answers
  mock.timers.tick(100_000);
  assert.equal(nudges(), 3);
  state.waiting = true; // a photo, which is no question
  listen();
  mock.timers.tick(1000);
  assert.equal(nudges(), 4);
  for (let second = 0; second < 1000; second++) mock.timers.tick(1000);
  assert.equal(nudges(), 9); // after 1, 2, 4 … 32 seconds
});
