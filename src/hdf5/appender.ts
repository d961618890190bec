import { H5LogError } from '../errors.ts';
import type { Io } from '../storage/drive.ts';
import { encodeSuperblock, type Superblock } from './superblock.ts';

/** The file grows ahead by at least this much, and by an eighth of what it holds up to the larger step. */
const SMALL_STEP = 2 ** 20;
const LARGE_STEP = 2 ** 26;

/** What a commit writes: bytes at the end, then the superblock that makes them count. Addresses are relative to the base. */
export interface Append {
  readonly at: number;
  readonly parts: readonly Uint8Array[];
  readonly end: number;
  readonly root: number;
  readonly extension: number;
}

/**
 * Appends to a file and flips its superblock. Only the superblock is ever overwritten, always in one blocking write of 48
 * bytes. The file is kept longer than its contents, because libhdf5 looks at the size before it reads the superblock: a reader
 * that opens in between would otherwise find a file shorter than it should be.
 */
export class Appender {
  readonly base: number;
  readonly #power: boolean;
  readonly #name: string;
  /** The superblock in the file, as bytes. */
  #superblock: Uint8Array;
  /** The file's size as we left it, or undefined before the first look. */
  #size: number | undefined;
  /** Where the contents of the last commit end. */
  committedEnd: number;
  /** Where the next bytes go; never back, so that bytes of a failed commit are not written over. */
  position: number;

  constructor(options: { name: string; superblock: Pick<Superblock, 'base' | 'bytes' | 'end'>; power: boolean }) {
    this.#name = options.name;
    this.base = options.superblock.base;
    this.#superblock = options.superblock.bytes;
    this.#power = options.power;
    this.committedEnd = options.superblock.end;
    this.position = options.superblock.end;
  }

  /** Everything of a commit: append, sync, check that the file is still ours, flip, sync. */
  *commit(append: Append): Io<void> {
    yield* this.#fence();
    yield* this.#grow(append.end);
    yield { op: 'write', parts: append.parts, offset: this.base + append.at };
    if (this.#power) yield { op: 'sync' };
    yield* this.#fence();
    const next = encodeSuperblock({ base: this.base, end: append.end, root: append.root, extension: append.extension });
    const previous = this.#superblock;
    try {
      yield { op: 'flip', parts: [next], offset: this.base };
      if (this.#power) yield { op: 'sync' };
    } catch (error) {
      // Whether the new superblock arrived is not known; the commit is reported as failed, so the old one must count.
      yield* this.#putBack(previous);
      throw error;
    }
    this.#superblock = next;
    this.committedEnd = append.end;
  }

  *#putBack(superblock: Uint8Array): Io<void> {
    try {
      yield { op: 'flip', parts: [superblock], offset: this.base };
    } catch {
      // The storage refuses everything now. Both superblocks describe a whole file.
    }
  }

  *#grow(end: number): Io<void> {
    const needed = this.base + end;
    if (this.#size !== undefined && needed <= this.#size) return;
    const size = needed + Math.min(LARGE_STEP, Math.max(SMALL_STEP, Math.floor(needed / 8)));
    yield { op: 'truncate', size };
    this.#size = size;
  }

  /** Another program that opened the file for writing changed its size or its superblock. */
  *#fence(): Io<void> {
    const size = yield { op: 'size' };
    if (this.#size === undefined) this.#size = size;
    const now = new Uint8Array(this.#superblock.length);
    const count = yield { op: 'read', into: now, offset: this.base, now: true };
    if (size !== this.#size || count < now.length || !this.#superblock.every((byte, i) => byte === now[i])) {
      const what = size === this.#size ? 'superblock' : `size (${this.#size} bytes, now ${size})`;
      throw new H5LogError('STORAGE', `another program changed the file: its ${what} is not what h5log left; nothing was committed`, { file: this.#name });
    }
  }

  /** Cuts the file to its contents. A file that is no longer ours is left alone. */
  *close(): Io<void> {
    try {
      yield* this.#fence();
    } catch {
      return;
    }
    const size = this.base + this.committedEnd;
    if (this.#size === size) return;
    yield { op: 'truncate', size };
    if (this.#power) yield { op: 'sync' };
    this.#size = size;
  }
}
