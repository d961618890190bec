/** HDF5's shuffle filter: the first bytes of all elements, then the second ones, and so on. Numbers then compress better. */
export function shuffle(bytes: Uint8Array, size: number): Uint8Array {
  const count = size > 1 ? Math.floor(bytes.length / size) : 0;
  if (count < 2) return bytes;
  const out = new Uint8Array(bytes.length);
  for (let b = 0; b < size; b++) {
    const to = b * count;
    for (let i = 0, from = b; i < count; i++, from += size) out[to + i] = bytes[from] as number;
  }
  out.set(bytes.subarray(count * size), count * size);
  return out;
}

/** Undoes {@link shuffle}. */
export function unshuffle(bytes: Uint8Array, size: number): Uint8Array {
  const count = size > 1 ? Math.floor(bytes.length / size) : 0;
  if (count < 2) return bytes;
  const out = new Uint8Array(bytes.length);
  for (let b = 0; b < size; b++) {
    const from = b * count;
    for (let i = 0, to = b; i < count; i++, to += size) out[to] = bytes[from + i] as number;
  }
  out.set(bytes.subarray(count * size), count * size);
  return out;
}
