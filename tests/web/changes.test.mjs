// The changes of "What if" and the words of the address that keep them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { none, read, write } from "../../vit/page/web/modes/changes.js";

test("nothing is changed by no words", () => {
  assert.equal(write(none()), "");
  assert.deepEqual(read(""), none());
});

test("all that can be changed is kept by the address", () => {
  const changes = {
    grey: [1, 2, 3, 9],
    blurred: [5],
    removed: [0, 7],
    swapped: [[4, 6]],
    shuffled: 3,
    positions: "dropped",
    heads: [
      [0, 1],
      [5, 2],
    ],
    layers: [2, 3],
    turn: 90,
    crop: 0.5,
    size: 0.75,
    goal: "fool",
  };
  assert.equal(
    write(changes),
    "grey:1-3.9;blurred:5;removed:0.7;layers:2-3;swapped:4-6;heads:0-1.5-2;shuffled:3;turn:90;crop:0.5;size:0.75;positions:dropped;goal:fool",
  );
  assert.deepEqual(read(write(changes)), changes);
});

test("words that make no sense change nothing", () => {
  assert.deepEqual(read("grey:x;swapped:1;turn:-4;positions:off;<b>;goal:;__proto__:1"), none());
});
