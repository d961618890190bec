import { concatBytes } from '../../src/base/buffers.ts';
import { H5LogError } from '../../src/base/errors.ts';
import { Random } from '../../src/bench/random.ts';
import { Contents } from '../../src/storage/memory.ts';
import {
  type BlockingStorage,
  type ByteStorage,
  checkPosition,
  closedError,
  storageFailure,
} from '../../src/storage/storage.ts';
import { Delays } from './delays.ts';
import { DiskModel, land, type Operation, type Piece, type Variant } from './disk-model.ts';
import { type Fault, type FaultKind, Faults } from './faults.ts';

export type { Operation, Variant } from './disk-model.ts';
export type { Fault, FaultKind } from './faults.ts';

export interface FaultyOptions {
  /** What is on the disk, durably, at the beginning. */
  readonly bytes?: Uint8Array;
  readonly name?: string;
  /** Decides the order of delayed operations and how much of a failing write lands. */
  readonly seed?: number;
  readonly faults?: readonly Fault[];
  /** Asynchronous operations take effect later and in random order. Blocking ones never wait. */
  readonly delays?: boolean;
  /** Leaves out the blocking half. */
  readonly asyncOnly?: boolean;
}

/**
 * A disk for tests of crashes and failures, with both halves. It keeps a log of all writes, truncates and syncs in the order
 * in which they took effect, so that any moment can be looked at afterwards:
 *
 * ```ts
 * const disk = faultyStorage();
 * workload(disk);                                         // once
 * for (let k = 0; k <= disk.log.length; k++) {            // a crash after each operation
 *   check(memoryStorage(disk.processImageAfter(k)));      // kill -9
 *   for (const v of variants(12)) check(memoryStorage(disk.imageAfter(k, v)));  // power loss
 * }
 * for (let n = 0; ; n++) {                                // a failure at each operation
 *   const disk = faultyStorage({ faults: [{ op: 'any', at: n, code: 'ENOSPC' }] });
 *   workload(disk);
 *   if (disk.injected === 0) break;
 * }
 * ```
 *
 * A crash in the middle of operation k is among the power-loss images after k + 1 if it is a write or truncate, and after k
 * if it is a sync; `processImageAfter(k, seed)` is a kill in the middle of it. Ascending k is fast: replay goes on where it was.
 */
export interface FaultyStorage extends ByteStorage {
  write(parts: readonly Uint8Array[], offset: number): Promise<void>;
  truncate(size: number): Promise<void>;
  sync(): Promise<void>;
  /** Writes, truncates and syncs that took effect, failed ones included. Reads are only counted. */
  readonly log: readonly Operation[];
  /** How often each kind of operation was called. */
  readonly counts: Readonly<Record<FaultKind, number>>;
  /** How many faults were thrown. */
  readonly injected: number;
  /** One more fault; its `at` counts from the beginning, so use `counts` for "the next". */
  fail(fault: Fault): void;
  /** From now on nothing fails. */
  heal(): void;
  /** What a machine may find after a power loss now: `imageAfter(log.length, variant)`. */
  image(variant: Variant): Uint8Array<ArrayBuffer>;
  /** What it may find if the power was lost after the first `k` operations of the log. */
  imageAfter(k: number, variant: Variant): Uint8Array<ArrayBuffer>;
  /** What other processes see now, also after `kill -9` of this one. */
  processImage(): Uint8Array<ArrayBuffer>;
  /** The same after the first `k` operations; with a seed, also a random beginning of operation k if that is a write. */
  processImageAfter(k: number, seed?: number): Uint8Array<ArrayBuffer>;
  /** Holds back all asynchronous operations until `resume` (with `delays`); blocking ones go on. */
  pause(): void;
  resume(): void;
  /** After `close` every call throws CLOSED until this. */
  reopen(): void;
}

/** `count` variants: 'none', 'all' and seeds. Where little is un-synced, several seeds give the same image. */
export function variants(count: number, seed = 1): Variant[] {
  return [...(['none', 'all'] as const), ...Array.from({ length: Math.max(0, count - 2) }, (_, i) => seed + i)];
}

/** See {@link FaultyStorage}. With `asyncOnly` there is no `blocking`. */
export function faultyStorage(options: FaultyOptions & { asyncOnly: true }): FaultyStorage;
export function faultyStorage(options?: FaultyOptions): FaultyStorage & { readonly blocking: BlockingStorage };
export function faultyStorage(options: FaultyOptions = {}): FaultyStorage {
  const disk = new FaultyDisk(options);
  const half =
    <A extends readonly unknown[], T>(call: (...args: A) => () => T) =>
    async (...args: A): Promise<T> => {
      // Faults and what a sync covers are decided at the call; the effect comes with the turn.
      const effect = call(...args);
      return options.delays ? disk.keepOpen(disk.delays.turn().then(effect)) : effect();
    };
  return {
    name: disk.name,
    size: half(() => disk.size()),
    read: half((into: Uint8Array, offset: number) => disk.read(into, offset)),
    write: half((parts: readonly Uint8Array[], offset: number) => disk.write(parts, offset)),
    truncate: half((size: number) => disk.truncate(size)),
    sync: half(() => disk.sync()),
    close: () => disk.close(),
    ...(options.asyncOnly ? {} : { blocking: blockingHalf(disk) }),
    log: disk.log,
    get counts() {
      return disk.faults.counts;
    },
    get injected() {
      return disk.faults.injected;
    },
    fail: (fault) => disk.faults.add(fault),
    heal: () => disk.faults.clear(),
    image: (variant) => disk.imageAfter(disk.log.length, variant),
    imageAfter: (k, variant) => disk.imageAfter(k, variant),
    processImage: () => disk.contents.copy(),
    processImageAfter: (k, seed) => disk.processImageAfter(k, seed),
    pause: () => disk.delays.pause(),
    resume: () => disk.delays.resume(),
    reopen: () => disk.reopen(),
  };
}

function blockingHalf(disk: FaultyDisk): BlockingStorage {
  return {
    size: () => disk.size()(),
    read: (into, offset) => disk.read(into, offset)(),
    write: (parts, offset) => disk.write(parts, offset)(),
    truncate: (size) => disk.truncate(size)(),
    sync: () => disk.sync()(),
    // As with a file, operations in flight still land.
    close: () => void disk.close(),
  };
}

/** Each operation is in two steps: the call checks and counts, the function it gives back takes effect. */
class FaultyDisk {
  readonly name: string;
  readonly contents: Contents;
  readonly log: Operation[] = [];
  readonly faults: Faults;
  readonly delays: Delays;
  readonly #initial: Uint8Array;
  readonly #running = new Set<Promise<unknown>>();
  #closed = false;
  #model: DiskModel;
  #process: Contents;
  #processed = 0;

  constructor(options: FaultyOptions) {
    const seed = options.seed ?? 0;
    this.name = options.name ?? 'faulty';
    this.#initial = (options.bytes ?? new Uint8Array(0)).slice();
    this.contents = new Contents(this.#initial);
    this.faults = new Faults(options.faults ?? [], new Random(seed));
    this.delays = new Delays(seed + 1);
    this.#model = new DiskModel(this.#initial);
    this.#process = new Contents(this.#initial);
  }

  size(): () => number {
    this.#check(0);
    return () => this.contents.size;
  }

  read(into: Uint8Array, offset: number): () => number {
    this.#check(offset);
    const fault = this.faults.next('read');
    return () => {
      if (fault) throw this.#failure('read', fault, offset);
      return this.contents.read(into, offset);
    };
  }

  write(parts: readonly Uint8Array[], offset: number): () => void {
    this.#check(offset);
    const fault = this.faults.next('write');
    const views = [...parts];
    return () => {
      // Copied when it lands and not when called: a caller that reuses its buffer too early is found out.
      const whole: Piece = { offset, bytes: concatBytes(views) };
      const length = whole.bytes.byteLength;
      const pieces = fault ? this.faults.landed(fault, whole) : length > 0 ? [whole] : [];
      this.#effect({ kind: 'write', offset, length, pieces }, fault);
      if (fault) throw this.#failure('write', fault, offset);
    };
  }

  truncate(size: number): () => void {
    this.#check(size);
    const fault = this.faults.next('truncate');
    return () => {
      this.#effect({ kind: 'truncate', size }, fault);
      if (fault) throw this.#failure('truncate', fault);
    };
  }

  sync(): () => void {
    this.#check(0);
    const fault = this.faults.next('sync');
    const covers = this.log.length;
    return () => {
      this.#effect({ kind: 'sync', covers }, fault);
      if (fault) throw this.#failure('sync', fault);
    };
  }

  /** `close` waits for the operation. */
  async keepOpen<T>(operation: Promise<T>): Promise<T> {
    this.#running.add(operation);
    try {
      return await operation;
    } finally {
      this.#running.delete(operation);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
  }

  reopen(): void {
    this.#closed = false;
  }

  imageAfter(k: number, variant: Variant): Uint8Array<ArrayBuffer> {
    this.#checkMoment(k);
    if (k < this.#model.count) this.#model = new DiskModel(this.#initial);
    for (const operation of this.log.slice(this.#model.count, k)) this.#model.apply(operation);
    return this.#model.image(variant);
  }

  processImageAfter(k: number, seed?: number): Uint8Array<ArrayBuffer> {
    this.#checkMoment(k);
    if (k < this.#processed) {
      this.#process = new Contents(this.#initial);
      this.#processed = 0;
    }
    for (const operation of this.log.slice(this.#processed, k)) land(this.#process, operation);
    this.#processed = k;
    const next = this.log[k];
    if (seed === undefined || next?.kind !== 'write') return this.#process.copy();
    // A killed process leaves its last write cut off somewhere: the kernel looks for signals between pages.
    const killed = this.#process.clone();
    const random = new Random(seed);
    for (const { offset, bytes } of next.pieces)
      killed.write(bytes.subarray(0, random.below(bytes.byteLength + 1)), offset);
    return killed.copy();
  }

  #check(position: number): void {
    if (this.#closed) throw closedError(this.name);
    checkPosition(this.name, position);
  }

  #checkMoment(k: number): void {
    if (Number.isInteger(k) && k >= 0 && k <= this.log.length) return;
    throw new H5LogError('OPTION', `there is no moment ${k} in a log of ${this.log.length} operations`);
  }

  #effect(operation: Operation, fault: Fault | undefined): void {
    const done = fault ? { ...operation, failed: fault.code ?? 'EIO' } : operation;
    this.log.push(done);
    land(this.contents, done);
  }

  #failure(doing: string, fault: Fault, offset?: number): H5LogError {
    const code = fault.code ?? 'EIO';
    return storageFailure(this.name, doing, Object.assign(new Error(`${code}: injected, ${doing}`), { code }), offset);
  }
}
