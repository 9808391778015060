// An explanation small enough to work out by hand: two layers, two heads, a class token and a grid of 1 × 2 patches.

import { Explanation } from "../../vit/page/web/data/explanation.js";
import { initialState, opened } from "../../vit/page/web/view.js";

const METHOD = { caption: "", note: "", term: "", paper: "", unit: "", of_token: false, missing: null };
export const METHODS = [
  { ...METHOD, name: "class_attention", title: "Class attention", columns: "heads", unit: "share", of_token: true },
  { ...METHOD, name: "rollout", title: "Rollout", columns: "heads", unit: "share", caption: "rollout" },
  { ...METHOD, name: "relevance", title: "Relevance", columns: "classes", caption: "relevance for {class}" },
  { ...METHOD, name: "grad_cam", title: "Grad-CAM", columns: "classes", missing: "Grad-CAM needs two layers." },
];

export const PHOTO = { path: "/kept/cat.jpg", url: "cat.jpg", orig_name: "cat.jpg" };

/** All of the attention, as it comes after the first file. */
export const attention = {
  attention: { shape: [2, 2, 3, 3], data: Uint8Array.from({ length: 2 * 2 * 3 * 3 }, (_, place) => place) },
  scale: { shape: [2, 2, 3], data: new Float32Array(12).fill(2) },
};

export function explanation(changes = {}) {
  const tensors = {
    looks_at: { shape: [2, 2, 3], data: Uint8Array.from([0, 1, 2, 9, 10, 11, 18, 19, 20, 27, 28, 29]) },
    looks_at_scale: { shape: [2, 2], data: new Float32Array(4).fill(2) },
    outliers: { shape: [2, 2], data: new Uint8Array([0, 0, 0, 1]) },
  };
  const about = {
    name: "cat",
    example: "cat",
    model: "some/model",
    title: "model",
    knows: "3 classes",
    sizes: { image: [32, 64], patch: 32, width: 8, mlp: 32 },
    size: [20, 10],
    box: [0, 0, 20, 10],
    cropped: false,
    remarks: [],
    grid: [1, 2],
    prefix: ["class"],
    layers: 2,
    heads: 2,
    whole: true,
    predictions: ["pizza", "steak", "sushi"].map((label, index) => ({ label, index, probability: 0.3 })),
    decided: [],
    lens: [],
    methods: METHODS,
  };
  return new Explanation({ tensors, about: { ...about, ...changes } }, {}, "file");
}

export function state(changes = {}, link = "", slot = "a") {
  const fresh = initialState(slot, new URLSearchParams(link));
  return { ...fresh, ...opened(fresh, explanation(), PHOTO), ...changes };
}

/** A tensor of 32-bit numbers. */
export const tensor = (shape, ...data) => ({ shape, data: new Float32Array(data) });
