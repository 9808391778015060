// Reading a file in the safetensors format: a header in JSON, then numbers.

const KINDS = { U8: Uint8Array, U16: Uint16Array, F32: Float32Array };

async function readFile(url) {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`The server answered ${answer.status}.`);
  const buffer = await answer.arrayBuffer();
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  const { __metadata__, ...entries } = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const tensors = {};
  for (const [
    name,
    {
      dtype,
      shape,
      data_offsets: [start, end],
    },
  ] of Object.entries(entries)) {
    const Kind = KINDS[dtype];
    tensors[name] = { shape, data: new Kind(buffer, 8 + length + start, (end - start) / Kind.BYTES_PER_ELEMENT) };
  }
  return { tensors, about: JSON.parse(__metadata__?.about ?? "{}") };
}
