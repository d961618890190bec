import { lookup3 } from '../../src/base/checksum.ts';
import { encodeSuperblock } from '../../src/hdf5/format/superblock.ts';

/** Little-endian numbers, texts and bytes one after the other; -1 is all ones. */
export function pack(...parts: (readonly [width: number, value: number | bigint] | string | Uint8Array)[]): Uint8Array {
  const list = parts.map((part) => {
    if (typeof part === 'string') return new TextEncoder().encode(part);
    if (part instanceof Uint8Array) return part;
    const bytes = new Uint8Array(part[0]);
    let rest = BigInt.asUintN(8 * part[0], BigInt(part[1]));
    for (let i = 0; i < bytes.length; i++, rest >>= 8n) bytes[i] = Number(rest & 255n);
    return bytes;
  });
  const out = new Uint8Array(list.reduce((sum, bytes) => sum + bytes.length, 0));
  let at = 0;
  for (const bytes of list) {
    out.set(bytes, at);
    at += bytes.length;
  }
  return out;
}

/** Bytes with the checksum of all of them behind. */
export function sealed(...parts: Uint8Array[]): Uint8Array {
  const bytes = pack(...parts);
  return pack(bytes, [4, lookup3(bytes)]);
}

/** A message of a version 2 header. */
export function message(type: number, body: Uint8Array, flags = 0, size = body.length): Uint8Array {
  return pack([1, type], [2, size], [1, flags], body);
}

export const continuation = (address: number, size: number): Uint8Array => message(0x10, pack([8, address], [8, size]));
export const hard = (name: string | Uint8Array, address: number): Uint8Array =>
  message(6, pack([1, 1], [1, 0], [1, lengthOf(name)], name, [8, address]));
export const soft = (name: string, path: string): Uint8Array =>
  message(6, pack([1, 1], [1, 8], [1, 1], [1, name.length], name, [2, path.length], path));
const lengthOf = (name: string | Uint8Array): number =>
  typeof name === 'string' ? new TextEncoder().encode(name).length : name.length;

export const GROUP = message(2, pack([1, 0], [1, 0], [8, -1], [8, -1]));
export const SCALAR = pack([1, 2], [1, 0], [1, 0], [1, 0]);
export const simple = (...sizes: (number | bigint)[]): Uint8Array =>
  pack([1, 2], [1, sizes.length], [1, 0], [1, 1], ...sizes.map((size) => [8, size] as const));

/** Datatypes, version 3 where that matters. */
export const INT32 = pack([4, 0x10 | (8 << 8)], [4, 4], [2, 0], [2, 32]);
export const INT8 = pack([4, 0x10 | (8 << 8)], [4, 1], [2, 0], [2, 8]);
export const REFERENCE = pack([4, 0x37], [4, 8]);
export const STRING = pack([4, 0x39 | (1 << 8)], [4, 16], INT8);
export const vlen = (base: Uint8Array): Uint8Array => pack([4, 0x39], [4, 16], base);
export const array = (base: Uint8Array, size: number, ...shape: number[]): Uint8Array =>
  pack([4, 0x3a], [4, size], [1, shape.length], ...shape.map((n) => [4, n] as const), base);

/** An attribute message, version 3. */
export function attribute(
  name: string | Uint8Array,
  type: Uint8Array,
  space: Uint8Array,
  data: Uint8Array,
  sharing = 0,
): Uint8Array {
  return message(
    12,
    pack(
      [1, 3],
      [1, sharing],
      [2, lengthOf(name) + 1],
      [2, type.length],
      [2, space.length],
      [1, 1],
      name,
      [1, 0],
      type,
      space,
      data,
    ),
  );
}

/** A version 2 object header with a size of four bytes. */
export function header(...messages: Uint8Array[]): Uint8Array {
  const body = pack(...messages);
  return sealed(pack('OHDR', [1, 2], [1, 2], [4, body.length], body));
}

export const block = (...messages: Uint8Array[]): Uint8Array => sealed(pack('OCHK', ...messages));
export const HEADER_START = 10;

/** A global heap collection of these objects, 1 and up; `sizes` may lie about their lengths. */
export function collection(
  objects: readonly Uint8Array[],
  size?: number | bigint,
  sizes: readonly (number | bigint)[] = [],
): Uint8Array {
  const body = objects.map((object, i) =>
    pack(
      [2, i + 1],
      [2, 1],
      [4, 0],
      [8, sizes[i] ?? object.length],
      object,
      new Uint8Array((8 - (object.length % 8)) % 8),
    ),
  );
  const bytes = pack(...body);
  const total = 16 + bytes.length + 16;
  return pack('GCOL', [4, 1], [8, size ?? total], bytes, [8, 0], [8, 16]);
}

/** A file under construction: everything is put where the last thing ended, or at a place of its own. */
export class Craft {
  #bytes = new Uint8Array(1024);
  #length = 48;

  /** Where the next part will lie. */
  get next(): number {
    return this.#length;
  }

  put(bytes: Uint8Array): number {
    const at = this.reserve(bytes.length);
    this.write(at, bytes);
    return at;
  }

  /** Room for something that is known later. */
  reserve(size: number): number {
    const at = this.#length;
    this.#length += size;
    if (this.#length > this.#bytes.length) {
      const grown = new Uint8Array(2 * this.#length);
      grown.set(this.#bytes);
      this.#bytes = grown;
    }
    return at;
  }

  write(at: number, bytes: Uint8Array): void {
    this.#bytes.set(bytes, at);
  }

  done(root: number, extension = -1): Uint8Array {
    this.write(0, encodeSuperblock({ base: 0, end: this.next, root, extension }));
    return this.#bytes.slice(0, this.#length);
  }
}

/** A file whose root group has these messages besides. */
export function rootWith(...messages: Uint8Array[]): Uint8Array {
  const craft = new Craft();
  return craft.done(craft.put(header(GROUP, ...messages)));
}
