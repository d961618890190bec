/**
 * The checksum of HDF5 metadata: Bob Jenkins' lookup3 (hashlittle), initial value 0. Words are assembled from bytes because
 * structures are not aligned.
 */
export function lookup3(bytes: Uint8Array, from = 0, to = bytes.length): number {
  let length = to - from;
  let a = (0xdeadbeef + length) | 0;
  let b = a;
  let c = a;
  let p = from;
  while (length > 12) {
    const count = Math.min(words.length, Math.floor((length - 1) / 12) * 3);
    takeWords(bytes, p, count);
    for (let w = 0; w < count; w += 3) {
      a = (a + (words[w] as number)) | 0;
      b = (b + (words[w + 1] as number)) | 0;
      c = (c + (words[w + 2] as number)) | 0;
      a = ((a - c) ^ ((c << 4) | (c >>> 28))) | 0;
      c = (c + b) | 0;
      b = ((b - a) ^ ((a << 6) | (a >>> 26))) | 0;
      a = (a + c) | 0;
      c = ((c - b) ^ ((b << 8) | (b >>> 24))) | 0;
      b = (b + a) | 0;
      a = ((a - c) ^ ((c << 16) | (c >>> 16))) | 0;
      c = (c + b) | 0;
      b = ((b - a) ^ ((a << 19) | (a >>> 13))) | 0;
      a = (a + c) | 0;
      c = ((c - b) ^ ((b << 4) | (b >>> 28))) | 0;
      b = (b + a) | 0;
    }
    p += count * 4;
    length -= count * 4;
  }
  if (length === 0) return c >>> 0;
  a = (a + tail(bytes, p, Math.min(4, length))) | 0;
  if (length > 4) b = (b + tail(bytes, p + 4, Math.min(4, length - 4))) | 0;
  if (length > 8) c = (c + tail(bytes, p + 8, length - 8)) | 0;
  c = ((c ^ b) - ((b << 14) | (b >>> 18))) | 0;
  a = ((a ^ c) - ((c << 11) | (c >>> 21))) | 0;
  b = ((b ^ a) - ((a << 25) | (a >>> 7))) | 0;
  c = ((c ^ b) - ((b << 16) | (b >>> 16))) | 0;
  a = ((a ^ c) - ((c << 4) | (c >>> 28))) | 0;
  b = ((b ^ a) - ((a << 14) | (a >>> 18))) | 0;
  c = ((c ^ b) - ((b << 24) | (b >>> 8))) | 0;
  return c >>> 0;
}

/** The words that are summed next: whole rounds of three. */
const words = new Int32Array(3 * 341);
const wordBytes = new Uint8Array(words.buffer);
const isLittleEndian = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1;

/** Many words are copied at once: one by one they take three times as long, and ten times as long before V8 compiles this. */
function takeWords(bytes: Uint8Array, from: number, count: number): void {
  if (!import.meta.page && isLittleEndian && count > 15) wordBytes.set(bytes.subarray(from, from + count * 4));
  else for (let w = 0, at = from; w < count; w++, at += 4) words[w] = word(bytes, at);
}

function word(bytes: Uint8Array, at: number): number {
  // The caller keeps `at + 3` inside; the assertions only satisfy the index checks of the compiler.
  return (
    (bytes[at] as number) |
    ((bytes[at + 1] as number) << 8) |
    ((bytes[at + 2] as number) << 16) |
    ((bytes[at + 3] as number) << 24)
  );
}

function tail(bytes: Uint8Array, at: number, count: number): number {
  let value = 0;
  for (let i = 0; i < count; i++) value |= (bytes[at + i] as number) << (8 * i);
  return value;
}

/**
 * Checksum of kind 2 in commit records (docs/format.md): 64 bits, where the platform has no AES-GMAC that can be called
 * synchronously. Two independent multiplicative sums, every byte in both.
 */
export function mixedSum(): { readonly kind: 2; update(bytes: Uint8Array): void; digest(): Uint8Array } {
  let a = 0x811c9dc5;
  let b = 0x9e3779b9;
  return {
    kind: 2,
    update(bytes) {
      for (let i = 0; i < bytes.length; i++) {
        const byte = bytes[i] as number;
        a = Math.imul(a ^ byte, 0x01000193);
        b = (Math.imul(b, 0x85ebca6b) + byte + (b >>> 15)) | 0;
      }
    },
    digest() {
      const out = new Uint8Array(8);
      new DataView(out.buffer).setUint32(0, a >>> 0, true);
      new DataView(out.buffer).setUint32(4, b >>> 0, true);
      return out;
    },
  };
}

// Kind 1 of checksums (docs/format.md) without OpenSSL, for pages, which have no blocking AES, and for small sums, which take less time than
// a cipher takes to set up: AES-GMAC with a key of zeros, whose two encrypted blocks are constants. What is left is GHASH, a product in
// GF(2^128) for every 16 bytes (NIST SP 800-38D, 6.4). A table has the products of each byte at each of the 16 places.

/** The encrypted block of zeros, which every product is with, and the one that the sum is masked with. */
const HASH_KEY = [0x66e94bd4, 0xef8a2c3b, 0x884cfa59, 0xca342b2e] as const;
const MASK = [0x58e2fcce, 0xfa7e3061] as const;
/** x^128 modulo the polynomial of the field. */
const REDUCTION = 0xe1000000;
const TABLE_SIZE = 16 * 256 * 16;

/** Takes whole blocks of 16 bytes into a sum of 4 words, from `at` on while they fit before `end`; gives the position behind them. */
type TakeBlocks = (sum: Int32Array, bytes: Uint8Array, at: number, end: number) => number;

let taking: TakeBlocks | undefined;

function blockTaker(): TakeBlocks {
  if (taking) return taking;
  const made = (import.meta.page ? null : compiled()) ?? plain();
  taking = made;
  return made;
}

/** For each of 16 places and each value of the byte there, its product with the key: 4 words. */
function fillTable(table: Int32Array): void {
  let [a, b, c, d]: [number, number, number, number] = [...HASH_KEY];
  for (let bit = 0; bit < 128; bit++) {
    const value = 0x80 >> (bit & 7);
    table.set([a, b, c, d], ((bit >> 3) * 256 + value) * 4);
    const carry = d & 1 ? REDUCTION : 0;
    d = (d >>> 1) | (c << 31);
    c = (c >>> 1) | (b << 31);
    b = (b >>> 1) | (a << 31);
    a = (a >>> 1) ^ carry;
  }
  // The product of a byte is the sum of those of its bits: of the lowest, and of the others, which came before.
  for (let place = 0; place < 16 * 1024; place += 1024) {
    for (let byte = 1; byte < 256; byte++) {
      const [to, lowest, others] = [place + byte * 4, place + (byte & -byte) * 4, place + (byte & (byte - 1)) * 4];
      if (others === place) continue;
      for (let k = 0; k < 4; k++) table[to + k] = (table[lowest + k] as number) ^ (table[others + k] as number);
    }
  }
}

// ---------------------------------------------------------------- in WebAssembly

// What is where in the memory of the module, in bytes: the table first, at 0.
const SUM = TABLE_SIZE;
const INPUT = SUM + 16;
const PAGES = 2;
const INPUT_SIZE = PAGES * 65536 - INPUT - 16;

interface Compiler {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (
    module: object,
  ) => {
    readonly exports: { readonly memory: { readonly buffer: ArrayBuffer }; take(from: number, to: number): void };
  };
}

/**
 * Takes blocks with additions of 128 bits, three times as fast as with four words for each. Null where that cannot be compiled: in V8
 * without its compilers, or where a policy forbids it.
 */
function compiled(): TakeBlocks | null {
  const { WebAssembly } = globalThis as unknown as { WebAssembly?: Compiler };
  if (!WebAssembly) return null;
  let made: InstanceType<Compiler['Instance']>;
  try {
    made = new WebAssembly.Instance(new WebAssembly.Module(moduleBytes()));
  } catch {
    return null;
  }
  const { memory, take } = made.exports;
  fillTable(new Int32Array(memory.buffer, 0, TABLE_SIZE / 4));
  const words = new Int32Array(memory.buffer, SUM, 4);
  const input = new Uint8Array(memory.buffer, INPUT, INPUT_SIZE);
  return (sum, bytes, at, end) => {
    const whole = at + ((end - at) & ~15);
    if (whole === at) return at;
    // Not by `set`: a small commit takes seven pieces, most of them a block or two.
    for (let i = 0; i < 4; i++) words[i] = sum[i] as number;
    for (let from = at; from < whole; ) {
      const to = Math.min(whole, from + INPUT_SIZE);
      if (to - from <= 32) for (let i = from; i < to; i++) input[i - from] = bytes[i] as number;
      else input.set(from === 0 && to === bytes.length ? bytes : bytes.subarray(from, to));
      take(INPUT, INPUT + to - from);
      from = to;
    }
    for (let i = 0; i < 4; i++) sum[i] = words[i] as number;
    return whole;
  };
}

/** The module: its memory, and `take(from, to)`, which takes the blocks between these two addresses into the sum. There is one at least. */
function moduleBytes(): Uint8Array {
  const unsigned = (value: number): number[] =>
    value < 128 ? [value] : [(value & 127) | 128, ...unsigned(value >>> 7)];
  const section = (id: number, body: readonly number[]): number[] => [id, ...unsigned(body.length), ...body];
  const name = (text: string): number[] => [text.length, ...Array.from(text, (letter) => letter.charCodeAt(0))];
  const get = (local: number): number[] => [0x20, local];
  const set = (local: number): number[] => [0x21, local];
  const constant = (value: number): number[] => [0x41, value];
  const simd = (operation: number, ...operands: number[]): number[] => [0xfd, ...unsigned(operation), ...operands];
  const load = (alignment: number, offset: number): number[] => simd(0x00, alignment, ...unsigned(offset));
  const [I32, I64, V128, NO_RESULT] = [0x7f, 0x7e, 0x7b, 0x40];
  const [ADD, LESS, LOOP, BRANCH_IF, END] = [0x6a, 0x49, 0x03, 0x0d, 0x0b];
  const [AND, SHIFT_LEFT, SHIFT_RIGHT, WRAP] = [0x83, 0x86, 0x88, 0xa7];
  const xor = simd(0x51);
  const [from, to, sum, block, half] = [0, 1, 2, 3, 4];
  // The first byte of a block is the highest one of its first word.
  const lanes = Array.from({ length: 16 }, (_, place) => place ^ 3);
  // Bytes are taken out of 64 bits at a time: out of 128 the processor takes only one in a cycle.
  const products = lanes.flatMap((_, lane) => {
    const shift = lane % 8 === 0 ? [0x42, 4, SHIFT_LEFT] : [0x42, 8 * (lane % 8) - 4, SHIFT_RIGHT];
    const bits = lane % 8 === 0 ? [...get(block), ...simd(0x1d, lane / 8), 0x22, half] : get(half);
    const place = lane ^ 3;
    return [
      ...[...bits, ...shift, 0x42, 0xf0, 0x1f, AND, WRAP],
      // Added in pairs, and these in pairs: a sum one after the other would be the longest wait.
      ...[...load(4, place * 4096), ...[1, 3, 7, 15].flatMap((bits) => ((lane & bits) === bits ? xor : []))],
    ];
  });
  const code = [
    ...[2, 2, V128, 1, I64],
    ...[...constant(0), ...load(4, SUM), ...set(sum)],
    ...[LOOP, NO_RESULT],
    ...[...get(from), ...load(0, 0), 0x22, block, ...get(block), ...simd(0x0d, ...lanes)],
    ...[...get(sum), ...xor, ...set(block), ...products, ...set(sum)],
    ...[...get(from), ...constant(16), ADD, ...set(from)],
    ...[...get(from), ...get(to), LESS, BRANCH_IF, 0, END],
    ...[...constant(0), ...get(sum), ...simd(0x0b, 4, ...unsigned(SUM)), END],
  ];
  return Uint8Array.from([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, 2, I32, I32, 0]),
    ...section(3, [1, 0]),
    ...section(5, [1, 0, PAGES]),
    ...section(7, [2, ...name('memory'), 2, 0, ...name('take'), 0, 0]),
    ...section(10, [1, ...unsigned(code.length), ...code]),
  ]);
}

// ---------------------------------------------------------------- in JavaScript

function plain(): TakeBlocks {
  const table = new Int32Array(TABLE_SIZE / 4);
  fillTable(table);
  return (sum, bytes, at, end) => takeBlocks(table, sum, bytes, at, end);
}

/** Written out: every index is computed once. */
function takeBlocks(t: Int32Array, sum: Int32Array, bytes: Uint8Array, at: number, end: number): number {
  let a = sum[0] as number;
  let b = sum[1] as number;
  let c = sum[2] as number;
  let d = sum[3] as number;
  let i = at;
  for (; i + 16 <= end; i += 16) {
    // For each place of a block, where the product of its byte is in the table.
    const p0 = ((bytes[i] as number) ^ (a >>> 24)) << 2;
    const p1 = (((bytes[i + 1] as number) ^ ((a >>> 16) & 255)) << 2) | 0x400;
    const p2 = (((bytes[i + 2] as number) ^ ((a >>> 8) & 255)) << 2) | 0x800;
    const p3 = (((bytes[i + 3] as number) ^ (a & 255)) << 2) | 0xc00;
    const p4 = (((bytes[i + 4] as number) ^ (b >>> 24)) << 2) | 0x1000;
    const p5 = (((bytes[i + 5] as number) ^ ((b >>> 16) & 255)) << 2) | 0x1400;
    const p6 = (((bytes[i + 6] as number) ^ ((b >>> 8) & 255)) << 2) | 0x1800;
    const p7 = (((bytes[i + 7] as number) ^ (b & 255)) << 2) | 0x1c00;
    const p8 = (((bytes[i + 8] as number) ^ (c >>> 24)) << 2) | 0x2000;
    const p9 = (((bytes[i + 9] as number) ^ ((c >>> 16) & 255)) << 2) | 0x2400;
    const pa = (((bytes[i + 10] as number) ^ ((c >>> 8) & 255)) << 2) | 0x2800;
    const pb = (((bytes[i + 11] as number) ^ (c & 255)) << 2) | 0x2c00;
    const pc = (((bytes[i + 12] as number) ^ (d >>> 24)) << 2) | 0x3000;
    const pd = (((bytes[i + 13] as number) ^ ((d >>> 16) & 255)) << 2) | 0x3400;
    const pe = (((bytes[i + 14] as number) ^ ((d >>> 8) & 255)) << 2) | 0x3800;
    const pf = (((bytes[i + 15] as number) ^ (d & 255)) << 2) | 0x3c00;
    a = half(t, p0, p1, p2, p3, p4, p5, p6, p7) ^ half(t, p8, p9, pa, pb, pc, pd, pe, pf);
    b = half(t, p0 + 1, p1 + 1, p2 + 1, p3 + 1, p4 + 1, p5 + 1, p6 + 1, p7 + 1);
    b ^= half(t, p8 + 1, p9 + 1, pa + 1, pb + 1, pc + 1, pd + 1, pe + 1, pf + 1);
    c = half(t, p0 + 2, p1 + 2, p2 + 2, p3 + 2, p4 + 2, p5 + 2, p6 + 2, p7 + 2);
    c ^= half(t, p8 + 2, p9 + 2, pa + 2, pb + 2, pc + 2, pd + 2, pe + 2, pf + 2);
    d = half(t, p0 + 3, p1 + 3, p2 + 3, p3 + 3, p4 + 3, p5 + 3, p6 + 3, p7 + 3);
    d ^= half(t, p8 + 3, p9 + 3, pa + 3, pb + 3, pc + 3, pd + 3, pe + 3, pf + 3);
  }
  sum[0] = a;
  sum[1] = b;
  sum[2] = c;
  sum[3] = d;
  return i;
}

/** The sum of eight words of the table. */
function half(
  t: Int32Array,
  a: number,
  b: number,
  c: number,
  d: number,
  e: number,
  f: number,
  g: number,
  h: number,
): number {
  const first = (t[a] as number) ^ (t[b] as number) ^ (t[c] as number) ^ (t[d] as number);
  return first ^ (t[e] as number) ^ (t[f] as number) ^ (t[g] as number) ^ (t[h] as number);
}

// ---------------------------------------------------------------- sums

/** The first 8 bytes of the AES-GMAC of some bytes, as `checksummer` of Node makes it of many. */
export function gmac(): { readonly kind: 1; update(bytes: Uint8Array): void; digest(): Uint8Array } {
  return new Gmac(blockTaker());
}

class Gmac {
  readonly kind = 1;
  readonly #takeBlocks: TakeBlocks;
  readonly #sum = new Int32Array(4);
  /** The beginning of a block. */
  readonly #block = new Uint8Array(16);
  #filled = 0;
  #length = 0;

  constructor(takeBlocks: TakeBlocks) {
    this.#takeBlocks = takeBlocks;
  }

  update(bytes: Uint8Array): void {
    const { length } = bytes;
    this.#length += length;
    let at = 0;
    if (this.#filled > 0) {
      while (at < length && this.#filled < 16) this.#block[this.#filled++] = bytes[at++] as number;
      if (this.#filled < 16) return;
      this.#takeBlock();
    }
    at = this.#takeBlocks(this.#sum, bytes, at, length);
    while (at < length) this.#block[this.#filled++] = bytes[at++] as number;
  }

  #takeBlock(): void {
    this.#takeBlocks(this.#sum, this.#block, 0, 16);
    this.#filled = 0;
  }

  digest(): Uint8Array {
    if (this.#filled > 0) {
      this.#block.fill(0, this.#filled);
      this.#takeBlock();
    }
    // The last block: the number of bits, and that nothing was encrypted.
    this.#block.fill(0);
    putWords(this.#block, Math.floor(this.#length / 2 ** 29), this.#length << 3);
    this.#takeBlock();
    const digest = new Uint8Array(8);
    putWords(digest, (this.#sum[0] as number) ^ MASK[0], (this.#sum[1] as number) ^ MASK[1]);
    return digest;
  }
}

/** Two words, the highest byte first. */
function putWords(bytes: Uint8Array, first: number, second: number): void {
  for (let i = 0; i < 4; i++) {
    bytes[i] = first >>> (24 - 8 * i);
    bytes[4 + i] = second >>> (24 - 8 * i);
  }
}
