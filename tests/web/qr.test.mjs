// QR codes are read back here, by the standard's rules and without the encoder's code.

import assert from "node:assert/strict";
import { test } from "node:test";
import { qrCode } from "../../vit/page/web/modes/qr.js";

// ISO/IEC 18004, table 9 at level L: data codewords of each block of versions 1 to 12, and table E.1.
const BLOCKS = [
  [19],
  [34],
  [55],
  [80],
  [108],
  [68, 68],
  [78, 78],
  [97, 97],
  [116, 116],
  [68, 68, 69, 69],
  [81, 81, 81, 81],
  [92, 92, 93, 93],
];
const ALIGNED = [
  [],
  [6, 18],
  [6, 22],
  [6, 26],
  [6, 30],
  [6, 34],
  [6, 22, 38],
  [6, 24, 42],
  [6, 26, 46],
  [6, 28, 50],
  [6, 30, 54],
  [6, 32, 58],
];
const FORMATS = [
  "111011111000100",
  "111001011110011",
  "111110110101010",
  "111100010011101",
  "110011000101111",
  "110001100011000",
  "110110001000001",
  "110100101110110",
];
const MASKS = [
  (i, j) => (i + j) % 2 === 0,
  (i) => i % 2 === 0,
  (_, j) => j % 3 === 0,
  (i, j) => (i + j) % 3 === 0,
  (i, j) => (Math.floor(i / 2) + Math.floor(j / 3)) % 2 === 0,
  (i, j) => ((i * j) % 2) + ((i * j) % 3) === 0,
  (i, j) => (((i * j) % 2) + ((i * j) % 3)) % 2 === 0,
  (i, j) => (((i + j) % 2) + ((i * j) % 3)) % 2 === 0,
];

function read(code) {
  const size = code.length;
  const version = (size - 17) / 4;
  const places = ALIGNED[version - 1];
  const near = (row, column) =>
    places.some((r) => places.some((c) => Math.abs(row - r) < 3 && Math.abs(column - c) < 3 && !corner(r, c, size)));
  const isData = (row, column) =>
    !(row < 9 && column < 9) &&
    !(row < 9 && column > size - 9) &&
    !(row > size - 9 && column < 9) &&
    row !== 6 &&
    column !== 6 &&
    !near(row, column) &&
    !(version >= 7 && ((row < 6 && column > size - 12) || (column < 6 && row > size - 12)));
  const format = [0, 1, 2, 3, 4, 5, 7, 8]
    .map((column) => code[8][column])
    .concat([7, 5, 4, 3, 2, 1, 0].map((row) => code[row][8]));
  const mask = FORMATS.indexOf(format.map(Number).join(""));
  assert.ok(mask >= 0, "the format is one of level L");
  const bits = [];
  let upwards = true;
  for (let right = size - 1; right > 0; right -= 2, upwards = !upwards) {
    if (right === 6) right--;
    for (let step = 0; step < size; step++)
      for (const column of [right, right - 1]) {
        const row = upwards ? size - 1 - step : step;
        if (isData(row, column)) bits.push(code[row][column] !== MASKS[mask](row, column));
      }
  }
  const bytes = Array.from({ length: Math.floor(bits.length / 8) }, (_, at) =>
    bits.slice(8 * at, 8 * at + 8).reduce((byte, bit) => 2 * byte + bit, 0),
  );
  const blocks = BLOCKS[version - 1].map(() => []);
  let at = 0;
  for (let place = 0; place < Math.max(...BLOCKS[version - 1]); place++)
    for (const [block, length] of BLOCKS[version - 1].entries()) if (place < length) blocks[block].push(bytes[at++]);
  const correction = (bytes.length - at) / blocks.length;
  for (let place = 0; place < correction; place++) for (const block of blocks) block.push(bytes[at++]);
  for (const block of blocks) assert.deepEqual(syndromes(block, correction), Array(correction).fill(0));
  const data = blocks.flatMap((block, number) => block.slice(0, BLOCKS[version - 1][number]));
  const text = data.map((byte) => byte.toString(2).padStart(8, "0")).join("");
  const wide = version < 10 ? 8 : 16;
  assert.equal(text.slice(0, 4), "0100");
  const length = Number.parseInt(text.slice(4, 4 + wide), 2);
  const found = Uint8Array.from({ length }, (_, byte) =>
    Number.parseInt(text.slice(4 + wide + 8 * byte, 12 + wide + 8 * byte), 2),
  );
  return new TextDecoder().decode(found);
}

const corner = (row, column, size) =>
  [
    [6, 6],
    [6, size - 7],
    [size - 7, 6],
  ].some(([r, c]) => r === row && c === column);

/** The block as a polynomial at the powers of 2: zero where nothing is wrong. */
function syndromes(block, count) {
  const powers = [1];
  for (let step = 1; step < 255; step++) powers.push((powers[step - 1] << 1) ^ (powers[step - 1] > 127 ? 0x11d : 0));
  const times = (one, other) => (one && other ? powers[(powers.indexOf(one) + powers.indexOf(other)) % 255] : 0);
  return Array.from({ length: count }, (_, root) => block.reduce((sum, byte) => times(sum, powers[root]) ^ byte, 0));
}

for (const length of [1, 17, 18, 60, 106, 134, 154, 192, 230, 271, 321, 360])
  test(`a link of ${length} letters is read back`, () => {
    const link = `http://x.y/?task=ü${"abcdefghij".repeat(40)}`.slice(0, length);
    assert.equal(read(qrCode(link)), link);
  });

test("finders stand in three corners, and what is too long has no code", () => {
  const code = qrCode("a");
  const finder = (row, column) => [...Array(7).keys()].map((at) => code[row + 3][column + at]);
  for (const [row, column] of [
    [0, 0],
    [0, 14],
    [14, 0],
  ])
    assert.deepEqual(finder(row, column).map(Number), [1, 0, 1, 1, 1, 0, 1]);
  assert.equal(qrCode("a".repeat(3000)), null);
});
