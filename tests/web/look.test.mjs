// How light a place is, where most of the look lies, and what people read; worked out by hand.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { GLOSSARY } from "../../vit/page/web/data/glossary.js";
import { between, contour, levels, lightness, lightScale, quantile } from "../../vit/page/web/data/look.js";
import { chapters, storyText } from "../../vit/page/web/data/story.js";
import { headName, layerName, patchName, percent } from "../../vit/page/web/data/words.js";
import { tileSide } from "../../vit/page/web/draw/tiles.js";

const near = (found, expected) => assert.ok(Math.abs(found - expected) < 1e-6, `${found} is not ${expected}`);

test("quantiles lie between values", () => {
  assert.equal(quantile([0, 10, 20], 0.5), 10);
  near(quantile([0, 10, 20], 0.05), 1);
  near(quantile([0, 10, 20], 0.985), 19.7);
});

test("a place is as light as its value between the 5th and the 98.5th percentile, to the power 0.75", () => {
  const scale = lightScale(Float32Array.from({ length: 201 }, (_, value) => value));
  near(scale[0], 10);
  near(scale[1], 197);
  assert.equal(lightness(5, scale), 0);
  assert.equal(lightness(200, scale), 1);
  near(lightness(10 + 187 / 16, scale), 1 / 8);
  assert.deepEqual([lightness(2, [2, 2]), lightness(3, [2, 2])], [0, 1]);
});

test("levels enclose their share of the look", () => {
  const values = new Float32Array([1, 2, 3, 4]);
  assert.deepEqual(levels(values, [0.25, 0.4, 0.75, 1]), [4, 4, 2, 1]);
  assert.deepEqual(levels(new Float32Array([-1, 1]), [0.5]), [1]);
});

test("between the middles of two patches a map goes evenly", () => {
  assert.deepEqual([...between(new Float32Array([0, 4]), [1, 2], 2)], [0, 1, 3, 4, 0, 1, 3, 4]);
  assert.deepEqual([...between(new Float32Array([0, 4]), [2, 1], 2)], [0, 0, 1, 1, 3, 3, 4, 4]);
});

test("a contour runs where values are equal to the level, at the middles of cells", () => {
  const lines = contour(new Float32Array([0, 4, 0, 4]), 2, 1);
  assert.deepEqual(lines, [[0.75, 0.5, 0.75, 1.5]]);
  assert.deepEqual(contour(new Float32Array([0, 0, 0, 0]), 2, 1), []);
});

test("a tile's area is to its place as its value to the highest", () => {
  assert.deepEqual([tileSide(1, 4), tileSide(4, 4), tileSide(-1, 4), tileSide(0, 0)], [0.5, 1, 0, 0]);
});

test("layers that agree are one chapter", () => {
  const decided = [
    ["sashimi", 0.1],
    ["sashimi", 0.3],
    ["bolognese", 0.9],
  ].map((best) => [best]);
  assert.deepEqual(chapters(decided), [
    { label: "sashimi", from: 0, to: 1, shares: [0.1, 0.3] },
    { label: "bolognese", from: 2, to: 2, shares: [0.9] },
  ]);
});

test("the story tells of clear ideas alone", () => {
  const story = (...best) => storyText({ decided: best.map((one) => [one]), layers: best.length });
  const [pole, hook, huevos, pasta, sure] = [
    ["pole", 0.05],
    ["hook", 0.07],
    ["huevos_rancheros", 0.46],
    ["pasta", 0.4],
    ["pasta", 0.9],
  ];
  assert.equal(
    story(pole, hook, huevos, sure),
    "Unclear up to layer 2, then huevos rancheros; answered in the last layer.",
  );
  assert.equal(story(pole, hook, pasta, sure), "Unclear up to layer 2; answered from layer 3 on.");
  assert.equal(story(pole, ["pasta", 0.1], pasta, sure), "Unclear up to layer 2; answered from layer 3 on.");
  assert.equal(story(huevos, pasta, sure), "First huevos rancheros; answered from layer 2 on.");
  assert.equal(story(pasta, sure), "Clear from the first layer on.");
  assert.equal(story(pole, hook), "Unclear in every layer.");
  assert.equal(story(), "");
});

test("percentages have the digits that a person needs", () => {
  const shares = [0.9213, 0.0488, 0.00893, 0.000257, 0.00001, 0, 0.9999, 1, 0.0996];
  assert.deepEqual(shares.map(percent), [
    ...["92 %", "4.9 %", "0.9 %", "0.03 %", "< 0.01 %", "0 %", "> 99 %", "100 %", "10 %"],
  ]);
});

test("people count from 1", () => {
  assert.deepEqual(
    [layerName(0), headName(2), patchName(15, [14, 14])],
    ["layer 1", "head 3", "the patch in row 2, column 2"],
  );
});

test("every word has one sentence or two, and its code is a line of the model's", () => {
  const model = readFileSync(new URL("../../vit/model.py", import.meta.url), "utf8");
  const lines = new Set(model.split("\n").map((line) => line.trim()));
  for (const [term, { text, code }] of Object.entries(GLOSSARY)) {
    assert.ok(text.split(" ").length <= 36, term);
    if (code) assert.ok(lines.has(code), `${term}: ${code}`);
  }
});
