// QR codes (ISO/IEC 18004) of bytes, at the lowest level of correction.

// For each version, at level L: codewords of correction in a block, and how many blocks there are.
const CORRECTION = [
  7, 10, 15, 20, 26, 18, 20, 24, 30, 18, 20, 24, 26, 30, 22, 24, 28, 30, 28, 28, 28, 28, 30, 30, 26, 28, 30, 30, 30, 30,
  30, 30, 30, 30, 30, 30, 30, 30, 30, 30,
];
const BLOCKS = [
  1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 6, 6, 6, 6, 7, 8, 8, 9, 9, 10, 12, 12, 12, 13, 14, 15, 16, 17, 18, 19, 19,
  20, 21, 22, 24, 25,
];
const MASKS = [
  (/** @type {number} */ r, /** @type {number} */ c) => (r + c) % 2,
  (/** @type {number} */ r) => r % 2,
  (/** @type {number} */ _, /** @type {number} */ c) => c % 3,
  (/** @type {number} */ r, /** @type {number} */ c) => (r + c) % 3,
  (/** @type {number} */ r, /** @type {number} */ c) => (Math.floor(r / 2) + Math.floor(c / 3)) % 2,
  (/** @type {number} */ r, /** @type {number} */ c) => ((r * c) % 2) + ((r * c) % 3),
  (/** @type {number} */ r, /** @type {number} */ c) => (((r * c) % 2) + ((r * c) % 3)) % 2,
  (/** @type {number} */ r, /** @type {number} */ c) => (((r + c) % 2) + ((r * c) % 3)) % 2,
];

/**
 * The modules of a code by row and column, true for dark; null where a text is too long for any.
 * @param {string} text
 * @returns {boolean[][] | null}
 */
export function qrCode(text) {
  const bytes = new TextEncoder().encode(text);
  let version = 1;
  while (version <= 40 && 4 + lengthBits(version) + 8 * bytes.length > 8 * dataLength(version)) version++;
  if (version > 40) return null;
  const codewords = withCorrection(encode(bytes, version), version);
  const codes = MASKS.map((_, mask) => draw(codewords, version, mask));
  const penalties = codes.map(penalty);
  return codes[penalties.indexOf(Math.min(...penalties))];
}

const lengthBits = (/** @type {number} */ version) => (version < 10 ? 8 : 16);

/** All codewords that fit beside the patterns. */
function allLength(/** @type {number} */ version) {
  const places = aligned(version).length;
  const size = 17 + 4 * version;
  let modules = size * size - 3 * 64 - 2 * (size - 16) - 31; // finders, timing, format
  if (places) modules -= (places * places - 3) * 25 - (places - 2) * 2 * 5;
  if (version >= 7) modules -= 36;
  return Math.floor(modules / 8);
}

const dataLength = (/** @type {number} */ version) =>
  allLength(version) - CORRECTION[version - 1] * BLOCKS[version - 1];

/** The middles of the alignment patterns, along each side. */
function aligned(/** @type {number} */ version) {
  if (version === 1) return [];
  const count = Math.floor(version / 7) + 2;
  const last = 10 + 4 * version;
  const step = version === 32 ? 26 : Math.ceil((last - 6) / (2 * count - 2)) * 2;
  return [6, ...Array.from({ length: count - 1 }, (_, place) => last - (count - 2 - place) * step)];
}

/**
 * @param {Uint8Array} bytes
 * @param {number} version
 */
function encode(bytes, version) {
  /** @type {number[]} */
  const bits = [];
  const push = (/** @type {number} */ value, /** @type {number} */ count) => {
    for (let bit = count - 1; bit >= 0; bit--) bits.push((value >> bit) & 1);
  };
  push(4, 4); // bytes
  push(bytes.length, lengthBits(version));
  for (const byte of bytes) push(byte, 8);
  const room = 8 * dataLength(version);
  push(0, Math.min(4, room - bits.length));
  push(0, (8 - (bits.length % 8)) % 8);
  for (let pad = 0xec; bits.length < room; pad ^= 0xec ^ 0x11) push(pad, 8);
  return Array.from({ length: bits.length / 8 }, (_, at) =>
    bits.slice(8 * at, 8 * at + 8).reduce((byte, bit) => 2 * byte + bit, 0),
  );
}

/**
 * The data in blocks, each with its correction, and taken in turns.
 * @param {number[]} data
 * @param {number} version
 */
function withCorrection(data, version) {
  const [count, length] = [BLOCKS[version - 1], CORRECTION[version - 1]];
  const short = Math.floor(data.length / count);
  const longer = data.length % count;
  const divisor = generator(length);
  const blocks = [];
  for (let block = 0, at = 0; block < count; block++) {
    const size = short + (block >= count - longer ? 1 : 0);
    const part = data.slice(at, at + size);
    at += size;
    blocks.push({ part, correction: remainder(part, divisor) });
  }
  const all = [];
  for (let place = 0; place <= short; place++)
    for (const { part } of blocks) if (place < part.length) all.push(part[place]);
  for (let place = 0; place < length; place++) for (const { correction } of blocks) all.push(correction[place]);
  return all;
}

/** In the field of 256 elements, modulo x⁸ + x⁴ + x³ + x² + 1. */
function multiply(/** @type {number} */ one, /** @type {number} */ other) {
  let product = 0;
  for (let bit = 7; bit >= 0; bit--) {
    product = (product << 1) ^ ((product >> 7) * 0x11d);
    product ^= ((other >> bit) & 1) * one;
  }
  return product;
}

/** The coefficients of (x − 1)(x − 2)(x − 4) …, without the highest. */
function generator(/** @type {number} */ degree) {
  const made = Array(degree).fill(0);
  made[degree - 1] = 1;
  for (let step = 0, root = 1; step < degree; step++, root = multiply(root, 2))
    for (let place = 0; place < degree; place++) made[place] = multiply(made[place], root) ^ (made[place + 1] ?? 0);
  return made;
}

/**
 * @param {number[]} data
 * @param {number[]} divisor
 */
function remainder(data, divisor) {
  const left = divisor.map(() => 0);
  for (const byte of data) {
    const factor = byte ^ /** @type {number} */ (left.shift());
    left.push(0);
    for (const [place, coefficient] of divisor.entries()) left[place] ^= multiply(coefficient, factor);
  }
  return left;
}

/**
 * @param {number[]} codewords
 * @param {number} version
 * @param {number} mask
 */
function draw(codewords, version, mask) {
  const size = 17 + 4 * version;
  /** @type {(boolean | undefined)[][]} */
  const modules = Array.from({ length: size }, () => Array(size).fill(undefined));
  const set = (/** @type {number} */ row, /** @type {number} */ column, /** @type {boolean} */ dark) => {
    if (row >= 0 && row < size && column >= 0 && column < size) modules[row][column] = dark;
  };
  for (let at = 0; at < size; at++) {
    set(6, at, at % 2 === 0);
    set(at, 6, at % 2 === 0);
  }
  for (const [row, column] of [
    [3, 3],
    [3, size - 4],
    [size - 4, 3],
  ])
    for (let down = -4; down <= 4; down++)
      for (let across = -4; across <= 4; across++) {
        const ring = Math.max(Math.abs(down), Math.abs(across));
        set(row + down, column + across, ring !== 2 && ring !== 4);
      }
  const middles = aligned(version);
  const last = middles.length - 1;
  for (const [i, row] of middles.entries())
    for (const [j, column] of middles.entries()) {
      if ((i === 0 && j === 0) || (i === 0 && j === last) || (i === last && j === 0)) continue; // finders are there
      for (let down = -2; down <= 2; down++)
        for (let across = -2; across <= 2; across++)
          set(row + down, column + across, Math.max(Math.abs(down), Math.abs(across)) !== 1);
    }
  drawFormat(set, size, mask);
  if (version >= 7) drawVersion(set, size, version);
  drawData(modules, codewords, mask);
  return /** @type {boolean[][]} */ (modules);
}

/**
 * @param {(row: number, column: number, dark: boolean) => void} set
 * @param {number} size
 * @param {number} mask
 */
function drawFormat(set, size, mask) {
  const data = (1 << 3) | mask; // 1: level L
  let rest = data;
  for (let step = 0; step < 10; step++) rest = (rest << 1) ^ ((rest >> 9) * 0x537);
  const bits = ((data << 10) | rest) ^ 0x5412;
  const bit = (/** @type {number} */ place) => ((bits >> place) & 1) === 1;
  for (let place = 0; place < 6; place++) set(place, 8, bit(place));
  set(7, 8, bit(6));
  set(8, 8, bit(7));
  set(8, 7, bit(8));
  for (let place = 9; place < 15; place++) set(8, 14 - place, bit(place));
  for (let place = 0; place < 8; place++) set(8, size - 1 - place, bit(place));
  for (let place = 8; place < 15; place++) set(size - 15 + place, 8, bit(place));
  set(size - 8, 8, true);
}

/**
 * @param {(row: number, column: number, dark: boolean) => void} set
 * @param {number} size
 * @param {number} version
 */
function drawVersion(set, size, version) {
  let rest = version;
  for (let step = 0; step < 12; step++) rest = (rest << 1) ^ ((rest >> 11) * 0x1f25);
  const bits = (version << 12) | rest;
  for (let place = 0; place < 18; place++) {
    const dark = ((bits >> place) & 1) === 1;
    const [long, short] = [Math.floor(place / 3), size - 11 + (place % 3)];
    set(long, short, dark);
    set(short, long, dark);
  }
}

/**
 * Two columns at a time, up and down, from the right.
 * @param {(boolean | undefined)[][]} modules
 * @param {number[]} codewords
 * @param {number} mask
 */
function drawData(modules, codewords, mask) {
  const size = modules.length;
  const taken = modules.map((row) => row.map((module) => module !== undefined));
  let at = 0;
  for (let right = size - 1; right >= 1; right -= 2) {
    if (right === 6) right = 5;
    const up = ((right + 1) & 2) === 0;
    for (let step = 0; step < size; step++)
      for (const column of [right, right - 1]) {
        const row = up ? size - 1 - step : step;
        if (taken[row][column]) continue;
        const bit = at < codewords.length * 8 && ((codewords[at >> 3] >> (7 - (at & 7))) & 1) === 1;
        at++;
        modules[row][column] = bit !== (MASKS[mask](row, column) === 0);
      }
  }
}

/** How hard a code is to read: long runs, squares, what looks like a finder, and too much of one colour. */
function penalty(/** @type {boolean[][]} */ modules) {
  const size = modules.length;
  let sum = 0;
  const lines = [...modules, ...modules.map((_, column) => modules.map((row) => row[column]))];
  for (const line of lines) {
    for (let at = 0, run = 0; at < size; at++) {
      run = at > 0 && line[at] === line[at - 1] ? run + 1 : 1;
      if (run === 5) sum += 3;
      else if (run > 5) sum += 1;
    }
    const text = line.map(Number).join("");
    for (const pattern of ["10111010000", "00001011101"])
      for (let at = text.indexOf(pattern); at >= 0; at = text.indexOf(pattern, at + 1)) sum += 40;
  }
  let dark = 0;
  for (let row = 0; row < size; row++)
    for (let column = 0; column < size; column++) {
      if (modules[row][column]) dark++;
      if (!row || !column) continue;
      const [one, ...others] = [
        modules[row][column],
        modules[row - 1][column],
        modules[row][column - 1],
        modules[row - 1][column - 1],
      ];
      if (others.every((other) => other === one)) sum += 3;
    }
  return sum + 10 * Math.floor(Math.abs((dark / size ** 2) * 20 - 10));
}
