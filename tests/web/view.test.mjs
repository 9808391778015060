// Settings, what they reset, and the address that opens the same view.

import assert from "node:assert/strict";
import { test } from "node:test";
import { choose, goBack, initialState, opened, pin, returned, SETTINGS, words } from "../../vit/page/web/view.js";
import { explanation, PHOTO, state } from "./planted.mjs";

/** A store that tells nobody. */
function held(current) {
  return {
    get: () => current,
    set: (changes) => {
      current = { ...current, ...changes };
    },
  };
}

test("a photo opens with the first method, in the last layer, by the mean of the heads", () => {
  const { map, layer, head, token, chosen, against } = state();
  assert.deepEqual([map, layer, head, token, chosen, against], ["class_attention", 1, "mean", 0, 0, null]);
});

test("another map lets the patch and the second class go", () => {
  const store = held(state({ token: 2, against: 1 }));
  choose(store, { map: "rollout" });
  assert.deepEqual([store.get().map, store.get().token, store.get().against], ["rollout", 0, null]);
  choose(store, { map: "relevance", against: 2 });
  assert.equal(store.get().against, 2);
  choose(store, { chosen: 1 });
  assert.equal(store.get().against, null);
});

test("another photo is looked at from the last layer on, another model's of the same photo where it was", () => {
  const dog = { ...PHOTO, path: "/kept/dog.jpg" };
  const layerOf = (changes, photo) => opened(state({ layer: 0, ...changes }), explanation(), photo).layer;
  assert.equal(layerOf({}, dog), 1);
  assert.equal(layerOf({ head: "max" }, dog), 1);
  assert.equal(layerOf({ head: 1 }, dog), 0); // compared from photo to photo
  assert.equal(layerOf({ head: 1, map: "relevance" }, dog), 1); // which has no heads
  assert.equal(layerOf({}, PHOTO), 0);
  assert.equal(layerOf({ linked: new URLSearchParams("layer=0") }, dog), 0);
});

test("what is reset is a setting itself", () => {
  for (const { resets = [] } of Object.values(SETTINGS)) for (const name of resets) assert.ok(name in SETTINGS);
});

test("a pinned patch is let go when it is pinned again", () => {
  const store = held(state({ map: "rollout" }));
  pin(store, 1);
  assert.deepEqual([store.get().map, store.get().token], ["class_attention", 2]);
  pin(store, 1);
  assert.equal(store.get().token, 0);
});

test("a patch that was clicked on another map leads back to that map", () => {
  const shown = () => [store.get().map, store.get().token, store.get().chosen, store.get().against];
  const store = held(state({ map: "relevance", chosen: 2, against: 0 }));
  pin(store, 1);
  pin(store, 0); // from patch to patch
  assert.deepEqual(shown(), ["class_attention", 1, 2, null]);
  pin(store, 0);
  assert.deepEqual(shown(), ["relevance", 0, 2, 0]);
  pin(store, 1);
  choose(store, { map: "rollout" }); // another way out: there is no way back
  goBack(store);
  assert.deepEqual(shown().slice(0, 2), ["rollout", 0]);
});

for (const [name, changes] of Object.entries({
  "a head": { map: "rollout", head: 1, layer: 0 },
  "a pinned patch": { token: 2, direction: "looked_at_by", head: "max" },
  "a difference": { map: "relevance", chosen: 2, against: 0 },
  "how it is drawn": {
    overlay: "heat",
    whole: true,
    leaveOut: false,
    smooth: false,
    grid: true,
    scale: "shared",
    opacity: 35,
  },
}))
  for (const slot of ["a", "b"])
    test(`an address opens the same view: ${name}, slot ${slot}`, () => {
      const one = { ...state({}, "", slot), ...changes };
      const other = state({}, String(words(one)), slot);
      for (const setting of Object.keys(SETTINGS)) assert.deepEqual(other[setting], one[setting], setting);
    });

test("the words of an address are the first slot's; others have theirs before them", () => {
  assert.equal(
    String(words(state({ token: 2 }))),
    "model=some%2Fmodel&example=cat&map=class_attention&layer=1&head=mean&patch=1",
  );
  assert.equal(words(state({}, "", "b")).get("b-layer"), "1");
  assert.equal(state({}, "layer=0", "b").layer, 1);
});

test("what makes no sense in an address is passed over", () => {
  const odd = state(
    {},
    "layer=99&head=x&map=<b>&patch=-1&class=1e1&against=1&direction=up&opacity=300&overlay=fog&smooth=1&scale=",
  );
  for (const setting of Object.keys(SETTINGS)) assert.deepEqual(odd[setting], state()[setting], setting);
  assert.equal(state({}, "map=relevance&class=1&against=1").against, null);
  assert.equal(state({}, "map=rollout&patch=1").token, 0);
});

test("a photo of one's own is not in the address, which says so; a line of text is", () => {
  const own = { ...state(), explanation: explanation({ example: null }), task: "What does head 2 look for? <b>" };
  assert.equal(words(own).get("photo"), "own");
  assert.equal(words(own).get("example"), null);
  const linked = initialState("a", words(own));
  assert.deepEqual([linked.photoMissing, linked.task], [true, own.task]);
  assert.equal(opened(linked, explanation({ example: null }), PHOTO).photoMissing, false);
});

test("Back to an address sets what it does not name as it was at first", () => {
  const now = state({ layer: 0, overlay: "tiles", head: 1, token: 2 });
  const { layer, overlay, head, token } = returned(now, new URLSearchParams("layer=1&head=max"));
  assert.deepEqual([layer, overlay, head, token], [1, "spotlight", "max", 0]);
});

test("a method that the model cannot give is told in a sentence", () => {
  const { failed, map } = state({}, "map=grad_cam");
  assert.deepEqual([failed, map], ["Grad-CAM needs two layers.", "class_attention"]);
});
