// What is different in "What if", as an object and as words of the address: "grey:3.10-14;heads:4-1;turn:90".

/**
 * @typedef {object} Changes
 * @property {number[]} grey  patches
 * @property {number[]} blurred
 * @property {number[]} removed
 * @property {[number, number][]} swapped
 * @property {number | null} shuffled  a seed
 * @property {"kept" | "dropped" | "shuffled"} positions
 * @property {[number, number][]} heads  that are off: layer, head
 * @property {number[]} layers  that are off
 * @property {number} turn  degrees
 * @property {number} crop  the share of the middle that is left
 * @property {number} size  times the model's own
 * @property {"" | "fool" | "keep"} goal  of a challenge
 */

/** @returns {Changes} */
export const none = () => ({
  grey: [],
  blurred: [],
  removed: [],
  swapped: [],
  shuffled: null,
  positions: "kept",
  heads: [],
  layers: [],
  turn: 0,
  crop: 1,
  size: 1,
  goal: "",
});

const SETS = /** @type {const} */ (["grey", "blurred", "removed", "layers"]);
const PAIRS = /** @type {const} */ (["swapped", "heads"]);
const NUMBERS = /** @type {const} */ (["shuffled", "turn", "crop", "size"]);
const WORDS = { positions: ["dropped", "shuffled"], goal: ["fool", "keep"] };

/** Changes as words; those that are none are left out. */
export function write(/** @type {Changes} */ changes) {
  const first = none();
  const words = [];
  for (const name of SETS) if (changes[name].length) words.push(`${name}:${runs(changes[name])}`);
  for (const name of PAIRS)
    if (changes[name].length) words.push(`${name}:${changes[name].map((pair) => pair.join("-")).join(".")}`);
  for (const name of NUMBERS) if (changes[name] !== first[name]) words.push(`${name}:${changes[name]}`);
  for (const name of /** @type {const} */ (["positions", "goal"]))
    if (changes[name] !== first[name]) words.push(`${name}:${changes[name]}`);
  return words.join(";");
}

/** What words say, as far as it makes sense. */
export function read(/** @type {string} */ text) {
  /** @type {any} */
  const found = none();
  for (const word of text.split(";")) {
    const [name, said = ""] = word.split(":");
    const pairs = said
      .split(".")
      .filter((each) => /^\d+(-\d+)?$/.test(each))
      .map((each) => each.split("-").map(Number));
    if (SETS.some((each) => each === name)) found[name] = pairs.flatMap(([from, to = from]) => between(from, to));
    else if (PAIRS.some((each) => each === name)) found[name] = pairs.filter(({ length }) => length === 2);
    else if (NUMBERS.some((each) => each === name) && /^\d+(\.\d+)?$/.test(said)) found[name] = Number(said);
    else if (Object.hasOwn(WORDS, name) && WORDS[/** @type {"goal"} */ (name)].includes(said)) found[name] = said;
  }
  return /** @type {Changes} */ (found);
}

/** Numbers in order, those that follow each other as "from-to". */
function runs(/** @type {number[]} */ numbers) {
  const sorted = [...new Set(numbers)].sort((one, other) => one - other);
  /** @type {[number, number][]} */
  const found = [];
  for (const number of sorted) {
    const last = found.at(-1);
    if (last && last[1] === number - 1) last[1] = number;
    else found.push([number, number]);
  }
  return found.map(([from, to]) => (from === to ? from : `${from}-${to}`)).join(".");
}

const MOST = 10_000; // patches, which no address may exceed
const between = (/** @type {number} */ from, /** @type {number} */ to) =>
  Array.from({ length: Math.min(MOST, Math.max(0, to - from + 1)) }, (_, step) => from + step);
