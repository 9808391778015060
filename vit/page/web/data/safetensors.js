// The safetensors format: a header in JSON, then numbers.

/** @typedef {{ shape: number[], data: Uint8Array | Uint16Array | Float32Array }} Tensor */
/** @typedef {Record<string, Tensor>} Tensors */
/** @typedef {{ tensors: Tensors, about: any }} File */

const KINDS = { U8: Uint8Array, U16: Uint16Array, F32: Float32Array };

/**
 * @param {ArrayBuffer} buffer
 * @returns {File}
 */
export function parse(buffer) {
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  const { __metadata__, ...entries } = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  /** @type {Tensors} */
  const tensors = {};
  for (const [name, { dtype, shape, data_offsets }] of Object.entries(entries)) {
    const Kind = KINDS[/** @type {keyof typeof KINDS} */ (dtype)];
    const [start, end] = data_offsets;
    tensors[name] = { shape, data: new Kind(buffer, 8 + length + start, (end - start) / Kind.BYTES_PER_ELEMENT) };
  }
  return { tensors, about: JSON.parse(__metadata__?.about ?? "{}") };
}
