// A file written by hand is read back.

import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "../../vit/page/web/data/safetensors.js";

/** A header, padded as safetensors pads it, and then the numbers. */
function file(header, ...numbers) {
  const text = JSON.stringify(header);
  const head = new TextEncoder().encode(text.padEnd(Math.ceil(text.length / 8) * 8));
  const bytes = numbers.map((array) => new Uint8Array(array.buffer));
  const whole = new Uint8Array(8 + head.length + bytes.reduce((sum, each) => sum + each.length, 0));
  new DataView(whole.buffer).setBigUint64(0, BigInt(head.length), true);
  whole.set(head, 8);
  let at = 8 + head.length;
  for (const each of bytes) {
    whole.set(each, at);
    at += each.length;
  }
  return whole.buffer;
}

test("tensors of all kinds, with their shapes", () => {
  const { tensors } = parse(
    file(
      {
        scale: { dtype: "F32", shape: [2], data_offsets: [0, 8] },
        attention: { dtype: "U16", shape: [1, 2], data_offsets: [8, 12] },
        photo: { dtype: "U8", shape: [3], data_offsets: [12, 15] },
      },
      new Float32Array([0.5, -2]),
      new Uint16Array([7, 65535]),
      new Uint8Array([1, 2, 255]),
    ),
  );
  assert.deepEqual([...tensors.scale.data], [0.5, -2]);
  assert.deepEqual(tensors.attention, { shape: [1, 2], data: new Uint16Array([7, 65535]) });
  assert.deepEqual([...tensors.photo.data], [1, 2, 255]);
});

test("what a file says of itself", () => {
  assert.deepEqual(parse(file({ __metadata__: { about: '{"name": "pizza"}' } })).about, { name: "pizza" });
  assert.deepEqual(parse(file({})).about, {});
});
