// HDF5's shuffle filter: the first bytes of all elements, then the second ones, and so on. Numbers then compress better. Elements
// of 2, 4 and 8 bytes have loops of their own: four elements at a time, as 32-bit words whose bytes change places.

const EVEN = 0x00ff00ff;
const ODD = 0xff00ff00 | 0;
const LOW = 0xffff;
const HIGH = 0xffff0000 | 0;

/** Gives a filter a buffer for its result, other than the one that holds its input. */
export type Room = (length: number) => Uint8Array;

/** A new buffer each time. */
export const newRoom: Room = (length) => new Uint8Array(length);

/** Bytes behind the last whole element stay as they are. */
export function shuffle(bytes: Uint8Array, size: number, room: Room = newRoom): Uint8Array {
  const count = size > 1 ? Math.floor(bytes.length / size) : 0;
  if (count < 2) return bytes;
  const out = room(bytes.length);
  const done =
    !import.meta.page && hasWords(bytes, size, count) ? splitWords(words(bytes), words(out), size, count) : 0;
  for (let b = 0; b < size; b++) {
    const to = b * count;
    for (let i = done, from = done * size + b; i < count; i++, from += size) out[to + i] = bytes[from] as number;
  }
  out.set(bytes.subarray(count * size), count * size);
  return out;
}

/** Undoes {@link shuffle}. */
export function unshuffle(bytes: Uint8Array, size: number, room: Room = newRoom): Uint8Array {
  const count = size > 1 ? Math.floor(bytes.length / size) : 0;
  if (count < 2) return bytes;
  const out = room(bytes.length);
  const done = !import.meta.page && hasWords(bytes, size, count) ? joinWords(words(bytes), words(out), size, count) : 0;
  for (let b = 0; b < size; b++) {
    const from = b * count;
    for (let i = done, to = done * size + b; i < count; i++, to += size) out[to] = bytes[from + i] as number;
  }
  out.set(bytes.subarray(count * size), count * size);
  return out;
}

/** Whether all rows of bytes, one for each byte of an element, consist of whole words. */
function hasWords(bytes: Uint8Array, size: number, count: number): boolean {
  return (size === 2 || size === 4 || size === 8) && count % 4 === 0 && bytes.byteOffset % 4 === 0;
}

function words(bytes: Uint8Array): Uint32Array {
  return new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
}

/** Splits all elements into rows; returns their number. */
function splitWords(from: Uint32Array, to: Uint32Array, size: number, count: number): number {
  const row = count >> 2;
  if (size === 2) {
    for (let i = 0; i < row; i++) {
      const a = from[2 * i] as number;
      const b = from[2 * i + 1] as number;
      // Each has the bytes of two elements: (low, high, low, high).
      const low = (a & 0xff) | ((a >>> 8) & 0xff00);
      const high = ((a >>> 8) & 0xff) | ((a >>> 16) & 0xff00);
      to[i] = low | ((b & 0xff) << 16) | ((b << 8) & 0xff000000);
      to[row + i] = high | ((b << 8) & 0xff0000) | (b & 0xff000000);
    }
    return count;
  }
  const step = size >> 2;
  for (let part = 0; part < step; part++) {
    const first = 4 * part * row;
    for (let i = 0, at = part; i < row; i++, at += 4 * step) {
      const a = from[at] as number;
      const b = from[at + step] as number;
      const c = from[at + 2 * step] as number;
      const d = from[at + 3 * step] as number;
      // The transposition of four by four bytes, by pairs and then by halves.
      const p = (a & EVEN) | ((b & EVEN) << 8);
      const q = ((a >>> 8) & EVEN) | (b & ODD);
      const r = (c & EVEN) | ((d & EVEN) << 8);
      const s = ((c >>> 8) & EVEN) | (d & ODD);
      to[first + i] = (p & LOW) | (r << 16);
      to[first + row + i] = (q & LOW) | (s << 16);
      to[first + 2 * row + i] = (p >>> 16) | (r & HIGH);
      to[first + 3 * row + i] = (q >>> 16) | (s & HIGH);
    }
  }
  return count;
}

/** Puts all elements together again; returns their number. */
function joinWords(from: Uint32Array, to: Uint32Array, size: number, count: number): number {
  const row = count >> 2;
  if (size === 2) {
    for (let i = 0; i < row; i++) {
      const a = from[i] as number;
      const b = from[row + i] as number;
      to[2 * i] = (a & 0xff) | ((b & 0xff) << 8) | ((a & 0xff00) << 8) | ((b & 0xff00) << 16);
      to[2 * i + 1] = ((a >>> 16) & 0xff) | ((b >>> 8) & 0xff00) | ((a >>> 8) & 0xff0000) | (b & 0xff000000);
    }
    return count;
  }
  const step = size >> 2;
  for (let part = 0; part < step; part++) {
    const first = 4 * part * row;
    for (let i = 0, at = part; i < row; i++, at += 4 * step) {
      const a = from[first + i] as number;
      const b = from[first + row + i] as number;
      const c = from[first + 2 * row + i] as number;
      const d = from[first + 3 * row + i] as number;
      const p = (a & EVEN) | ((b & EVEN) << 8);
      const q = ((a >>> 8) & EVEN) | (b & ODD);
      const r = (c & EVEN) | ((d & EVEN) << 8);
      const s = ((c >>> 8) & EVEN) | (d & ODD);
      to[at] = (p & LOW) | (r << 16);
      to[at + step] = (q & LOW) | (s << 16);
      to[at + 2 * step] = (p >>> 16) | (r & HIGH);
      to[at + 3 * step] = (q >>> 16) | (s & HIGH);
    }
  }
  return count;
}
