// Maps and scales, worked out by hand.

import assert from "node:assert/strict";
import { test } from "node:test";
import { attentionMaps, byLayer, classMaps, max, mean, range, withoutOutliers } from "../../vit/page/web/data/maps.js";
import { layer, maps, ofWholeModel, scaleOf, title, values } from "../../vit/page/web/data/shown.js";
import { attention, explanation, state, tensor } from "./planted.mjs";

const numbers = (arrays) => arrays.map((values) => [...values]);

test("a token's look is its row, and what looks at it its column: scale × share²", () => {
  const { layers, elsewhere, columns } = attentionMaps(explanation(), attention, new Map(), 0, "looks_at");
  assert.deepEqual(columns, ["mean", "max", 0, 1]);
  assert.deepEqual(numbers(layers[0].slice(2)), [
    [2 * 1, 2 * 4],
    [2 * 100, 2 * 121],
  ]); // shares 1, 2 and 10, 11
  assert.deepEqual(numbers(elsewhere[0].slice(2)), [[0], [2 * 81]]);
  assert.deepEqual(numbers(layers[0].slice(0, 2)), [
    [101, 125],
    [200, 242],
  ]);
  const asked = attentionMaps(explanation(), attention, new Map(), 1, "looked_at_by");
  assert.deepEqual(numbers(asked.layers[0].slice(2, 3)), [[2 * 16, 2 * 49]]); // of shares 1, 4, 7 without the first
});

test("before the attention is here, tokens are asked for one by one; the class token's look came first", () => {
  const first = state();
  const early = (token, looks = first.looks) => attentionMaps(explanation(), null, looks, token, "looks_at");
  const later = attentionMaps(explanation(), attention, new Map(), 0, "looks_at");
  assert.deepEqual(early(0).layers.map(numbers), later.layers.map(numbers));
  assert.equal(early(2), null);
  assert.equal(attentionMaps(explanation(), null, first.looks, 0, "looked_at_by"), null);
  const looks = { looks_at: tensor([2, 2, 3], ...Array(12).keys()) }; // as they are, without a scale
  assert.deepEqual(numbers(early(2, new Map([[2, looks]])).layers[1].slice(2)), [
    [7, 8],
    [10, 11],
  ]);
});

test("classes as they come, and the difference of two", () => {
  const tensors = [tensor([1, 2, 2], 1, 2, 3, 4), undefined, tensor([1, 2, 2], 0, 5, 1, 1)];
  const found = classMaps(["pizza", "steak", "sushi"], tensors, 2, null);
  assert.deepEqual(
    [found.columns, found.ranks],
    [
      ["pizza", "sushi"],
      [0, 2],
    ],
  );
  assert.deepEqual(numbers(found.layers[1]), [
    [3, 4],
    [1, 1],
  ]);
  const difference = classMaps(["pizza", "steak", "sushi"], tensors, 0, 2);
  assert.deepEqual([numbers(difference.layers[0]), difference.signed], [[[1, -3]], true]);
  assert.equal(classMaps(["pizza", "steak", "sushi"], tensors, 1, null), null);
  assert.equal(classMaps(["pizza", "steak", "sushi"], tensors, 0, 1), null);
});

test("a tensor by layer and column", () => {
  assert.deepEqual(byLayer(tensor([2, 2, 1], 1, 2, 3, 4)).map(numbers), [
    [[1], [3]],
    [[2], [4]],
  ]);
});

test("outliers are left out in their layer, of the whole model's map those of the last", () => {
  const of = (...layers) => ({ columns: ["pizza"], layers: layers.map((values) => [new Float32Array(values)]) });
  assert.deepEqual(withoutOutliers(of([1, 2], [3, 4]), explanation()).layers.map(numbers), [[[1, 2]], [[3, 0]]]);
  assert.deepEqual(withoutOutliers(of([5, 6]), explanation()).layers.map(numbers), [[[5, 0]]]);
});

test("mean, maximum and range", () => {
  const arrays = [new Float32Array([1, 4]), new Float32Array([3, 2])];
  assert.deepEqual([...mean(arrays)], [2, 3]);
  assert.deepEqual([...max(arrays)], [3, 4]);
  assert.deepEqual(range(arrays), [1, 4]);
  assert.deepEqual(range([new Float32Array([-5, 2])], true), [-5, 5]);
});

test("the scale of a map, or of all", () => {
  const here = { rollout: tensor([4, 2, 2], ...Array(16).keys()) };
  const own = state({ map: "rollout", maps: here, head: 1, layer: 0, leaveOut: false });
  assert.deepEqual([...values(own)], [12, 13]);
  assert.deepEqual(scaleOf(own, values(own)), [12, 13]);
  assert.deepEqual(scaleOf({ ...own, scale: "shared" }, values(own)), [0, 15]);
});

test("a map of the whole model has no layer", () => {
  const here = { "relevance 0": tensor([1, 1, 2], 1, 2) };
  const whole = state({ map: "relevance", maps: here, layer: 0, leaveOut: false });
  assert.equal(ofWholeModel(whole), true);
  assert.equal(layer(whole), 1);
  assert.deepEqual([...values(whole)], [1, 2]);
  assert.equal(title(whole), "Relevance for pizza");
  assert.equal(
    title(state({ map: "rollout", maps: {}, head: "max", layer: 0 })),
    "Rollout, layer 1, maximum of the heads",
  );
});

test("maps are made anew when what they are made from changes, and only then", () => {
  const first = state({ map: "relevance", maps: { "relevance 0": tensor([1, 2, 2], 1, 2, 3, 4) } });
  assert.equal(maps({ ...first, layer: 0, hovered: 1, opacity: 3 }), maps(first));
  assert.notEqual(maps({ ...first, leaveOut: false }), maps(first));
  assert.notEqual(maps({ ...first, explanation: explanation() }), maps(first));
});
