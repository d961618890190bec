// HDF5's shuffle filter: the first bytes of all elements, then the second ones, and so on. Numbers then compress better. Elements
// of 2, 4 and 8 bytes have loops of their own that handle whole words.

/** Bytes behind the last whole element stay as they are. */
export function shuffle(bytes: Uint8Array, size: number): Uint8Array {
  const count = size > 1 ? Math.floor(bytes.length / size) : 0;
  if (count < 2) return bytes;
  const out = new Uint8Array(bytes.length);
  const { buffer, byteOffset } = bytes;
  if (size === 2 && byteOffset % 2 === 0) {
    split2(new Uint16Array(buffer, byteOffset, count), out, count);
  } else if ((size === 4 || size === 8) && byteOffset % 4 === 0) {
    const words = new Uint32Array(buffer, byteOffset, (count * size) / 4);
    for (let word = 0; word < size / 4; word++) split4(words, word, size / 4, out, word * 4 * count, count);
  } else {
    for (let b = 0; b < size; b++) {
      const to = b * count;
      for (let i = 0, from = b; i < count; i++, from += size) out[to + i] = bytes[from] as number;
    }
  }
  out.set(bytes.subarray(count * size), count * size);
  return out;
}

/** Undoes {@link shuffle}. */
export function unshuffle(bytes: Uint8Array, size: number): Uint8Array {
  const count = size > 1 ? Math.floor(bytes.length / size) : 0;
  if (count < 2) return bytes;
  const out = new Uint8Array(bytes.length);
  if (size === 2) {
    join2(bytes, new Uint16Array(out.buffer, 0, count), count);
  } else if (size === 4 || size === 8) {
    const words = new Uint32Array(out.buffer, 0, (count * size) / 4);
    for (let word = 0; word < size / 4; word++) join4(bytes, word * 4 * count, words, word, size / 4, count);
  } else {
    for (let b = 0; b < size; b++) {
      const from = b * count;
      for (let i = 0, to = b; i < count; i++, to += size) out[to] = bytes[from + i] as number;
    }
  }
  out.set(bytes.subarray(count * size), count * size);
  return out;
}

function split2(words: Uint16Array, out: Uint8Array, count: number): void {
  for (let i = 0; i < count; i++) {
    const word = words[i] as number;
    out[i] = word;
    out[count + i] = word >> 8;
  }
}

function join2(bytes: Uint8Array, words: Uint16Array, count: number): void {
  for (let i = 0; i < count; i++) words[i] = (bytes[i] as number) | ((bytes[count + i] as number) << 8);
}

/** Takes every `step`-th word from `first` on apart, into four rows of `count` bytes that begin at `to`. */
function split4(words: Uint32Array, first: number, step: number, out: Uint8Array, to: number, count: number): void {
  const [b, c, d] = [to + count, to + 2 * count, to + 3 * count];
  for (let i = 0, at = first; i < count; i++, at += step) {
    const word = words[at] as number;
    out[to + i] = word;
    out[b + i] = word >>> 8;
    out[c + i] = word >>> 16;
    out[d + i] = word >>> 24;
  }
}

function join4(bytes: Uint8Array, from: number, words: Uint32Array, first: number, step: number, count: number): void {
  const [b, c, d] = [from + count, from + 2 * count, from + 3 * count];
  for (let i = 0, at = first; i < count; i++, at += step) {
    words[at] =
      (bytes[from + i] as number) |
      ((bytes[b + i] as number) << 8) |
      ((bytes[c + i] as number) << 16) |
      ((bytes[d + i] as number) << 24);
  }
}
