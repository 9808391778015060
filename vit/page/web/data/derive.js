// Work that is done anew only when what it was done from has changed.

/**
 * A function of the state that knows by itself which keys it reads. Each slot keeps its own result.
 * @template {{ slot: string }} State
 * @template Made
 * @param {(state: State) => Made} make
 * @returns {(state: State) => Made}
 */
export function derive(make) {
  /** @type {Map<string, { read: Map<string, unknown>, made: Made }>} */
  const kept = new Map();
  return (state) => {
    const last = kept.get(state.slot);
    if (last && unchanged(last.read, state)) return last.made;
    const read = new Map();
    const made = make(recording(state, read));
    kept.set(state.slot, { read, made });
    return made;
  };
}

/**
 * The state, which notes in `read` what is read of it.
 * @template {object} State
 * @param {State} state
 * @param {Map<string, unknown>} read
 * @returns {State}
 */
export function recording(state, read) {
  return new Proxy(state, {
    get(target, key) {
      const value = Reflect.get(target, key);
      read.set(String(key), value);
      return value;
    },
  });
}

/**
 * @param {Map<string, unknown>} read
 * @param {object} state
 */
export function unchanged(read, state) {
  for (const [key, value] of read) if (!Object.is(Reflect.get(state, key), value)) return false;
  return true;
}

/**
 * A function that keeps its last result, for the same arguments.
 * @template {unknown[]} Arguments
 * @template Made
 * @param {(...given: Arguments) => Made} make
 * @returns {(...given: Arguments) => Made}
 */
export function memo(make) {
  /** @type {{ given: Arguments, made: Made } | null} */
  let last = null;
  return (...given) => {
    if (!last?.given.every((value, place) => Object.is(value, given[place]))) last = { given, made: make(...given) };
    return last.made;
  };
}
