import { H5LogError } from '../../base/errors.ts';
import { FileBytes } from '../../hdf5/format/file-bytes.ts';
import { readSuperblock, type Superblock } from '../../hdf5/format/superblock.ts';
import { driveAsync, type Io } from '../../storage/io.ts';
import type { ByteStorage } from '../../storage/storage.ts';
import { Runner } from '../run.ts';

/** Large ranges are looked at in windows of this size, the next of which is read meanwhile. */
const WINDOW = 4 * 2 ** 20;
/** Small ranges mostly follow one another: so much is read at once. */
const AHEAD = 256 * 1024;

/** A file whose bytes are looked at as they lie there, whatever its superblock says. */
export class CheckedFile {
  readonly storage: ByteStorage;
  readonly size: number;
  /** null: it is lost. */
  readonly superblock: Superblock | null;
  /** Why. */
  readonly trouble: H5LogError | null;
  assumedBase = 0;
  #near: { at: number; bytes: Uint8Array } = { at: 0, bytes: new Uint8Array(0) };
  readonly #windows = [new Uint8Array(0), new Uint8Array(0)];
  readonly #runner: Runner;

  private constructor(runner: Runner, size: number, superblock: Superblock | null, trouble: H5LogError | null) {
    this.#runner = runner;
    this.storage = runner.storage;
    this.size = size;
    this.superblock = superblock;
    this.trouble = trouble;
  }

  static async open(storage: ByteStorage): Promise<CheckedFile> {
    const runner = new Runner(storage);
    let superblock: Superblock | null = null;
    let trouble: H5LogError | null = null;
    try {
      superblock = await runner.run(readSuperblock());
    } catch (error) {
      if (!(error instanceof H5LogError) || error.code !== 'FORMAT') throw error;
      trouble = error;
    }
    // After the superblock: a writer may have grown the file before it flipped it.
    return new CheckedFile(runner, await storage.size(), superblock, trouble);
  }

  get name(): string {
    return this.storage.name;
  }

  /** Where the superblock is, and addresses count from; of a file that lost it, where it seems to have been. */
  get base(): number {
    return this.superblock?.base ?? this.assumedBase;
  }

  /** File offset behind everything that may be looked at. */
  get end(): number {
    return this.superblock ? this.base + this.superblock.end : this.size;
  }

  run<T>(io: Io<T>): Promise<T> {
    return this.#runner.run(io);
  }

  /** The bytes of the state that ends at a file offset. */
  upTo(end: number): FileBytes {
    const { addressSize = 8, lengthSize = 8 } = this.superblock ?? {};
    return new FileBytes(this.base, end - this.base, addressSize, lengthSize, undefined, this.storage);
  }

  /** A few bytes; valid until the next call. */
  async get(from: number, length: number): Promise<Uint8Array> {
    const { at, bytes } = this.#near;
    if (from >= at && from + length <= at + bytes.length) return bytes.subarray(from - at, from - at + length);
    // Records that were merged are looked at from the last to the first.
    const isBackwards = from < at && from + length >= at;
    const first = isBackwards ? Math.max(0, from + length - AHEAD) : from;
    const wanted = Math.min(Math.max(length, AHEAD), Math.max(from - first + length, this.size - first));
    const near = new Uint8Array(wanted);
    await this.#fill(near, first);
    this.#near = { at: first, bytes: near };
    return near.subarray(from - first, from - first + length);
  }

  /** Looks at all bytes from `from` to `to`, window by window. The windows are used again. */
  async each(from: number, to: number, look: (bytes: Uint8Array, at: number) => void): Promise<void> {
    if (to - from <= AHEAD) {
      if (to > from) look(await this.get(from, to - from), from);
      return;
    }
    let which = 0;
    const begin = (at: number): Promise<Uint8Array> => {
      which = 1 - which;
      const length = Math.min(WINDOW, to - at);
      let window = this.#windows[which] as Uint8Array;
      if (window.length < length) window = this.#windows[which] = new Uint8Array(length);
      const bytes = window.subarray(0, length);
      const read = this.#fill(bytes, at).then(() => bytes);
      // It is awaited in its turn; nobody may call it unhandled before.
      read.catch(() => {});
      return read;
    };
    let next = begin(from);
    for (let at = from; at < to; ) {
      const bytes = await next;
      if (at + bytes.length < to) next = begin(at + bytes.length);
      look(bytes, at);
      at += bytes.length;
    }
  }

  /** Every file offset from `from` to `to` at which these bytes begin, until `found` says that it has enough. */
  async find(needle: Uint8Array, from: number, to: number, found: (at: number) => boolean): Promise<void> {
    let enough = false;
    // The end of a window, so that nothing is missed where two meet.
    let tail = new Uint8Array(0);
    await this.each(from, to, (bytes, at) => {
      if (enough) return;
      if (tail.length > 0) {
        const joint = new Uint8Array(tail.length + Math.min(needle.length - 1, bytes.length));
        joint.set(tail);
        joint.set(bytes.subarray(0, needle.length - 1), tail.length);
        enough = search(joint, needle, at - tail.length, found);
      }
      if (!enough) enough = search(bytes, needle, at, found);
      tail = bytes.slice(Math.max(0, bytes.length - needle.length + 1));
    });
  }

  async #fill(into: Uint8Array, from: number): Promise<void> {
    const io = read(into, from);
    // A large read goes on while the window before it is summed.
    const count = await (into.length > AHEAD ? driveAsync(this.storage, io) : this.run(io));
    if (count < into.length) {
      const text = `the file ends at byte ${from + count}, before its contents do`;
      throw new H5LogError('FORMAT', text, { file: this.name, offset: from + count });
    }
  }
}

function* read(into: Uint8Array, offset: number): Io<number> {
  return yield { op: 'read', into, offset };
}

function search(bytes: Uint8Array, needle: Uint8Array, base: number, found: (at: number) => boolean): boolean {
  const first = needle[0] as number;
  const last = bytes.length - needle.length;
  for (let at = bytes.indexOf(first); at >= 0 && at <= last; at = bytes.indexOf(first, at + 1)) {
    let i = 1;
    while (i < needle.length && bytes[at + i] === needle[i]) i++;
    if (i === needle.length && found(base + at)) return true;
  }
  return false;
}
