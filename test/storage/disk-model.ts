import { Random } from '../../src/bench/random.ts';
import { Contents } from '../../src/storage/memory.ts';

/** What a disk writes as a whole or not at all. */
export const SECTOR = 512;

/** Bytes that landed at an offset. */
export interface Piece {
  readonly offset: number;
  readonly bytes: Uint8Array;
}

/** A write; `pieces` is what reached the page cache, less than `length` bytes if it failed. */
export interface WriteOperation {
  readonly kind: 'write';
  readonly offset: number;
  readonly length: number;
  readonly pieces: readonly Piece[];
  readonly failed?: string;
}

/** A change of size; a failed one changed nothing. */
export interface TruncateOperation {
  readonly kind: 'truncate';
  readonly size: number;
  readonly failed?: string;
}

/** A sync covers the first `covers` operations of the log: those that were complete when it was called. */
export interface SyncOperation {
  readonly kind: 'sync';
  readonly covers: number;
  readonly failed?: string;
}

/** One line of the log, in the order in which the operations took effect. `failed` is the error's code. */
export type Operation = WriteOperation | TruncateOperation | SyncOperation;

/** Which of the states that a power loss may leave: nothing un-synced landed, all of it, or a choice made by a seed. */
export type Variant = 'none' | 'all' | number;

interface Change {
  readonly index: number;
  readonly operation: WriteOperation | TruncateOperation;
}

/** Changes that are on the disk, or of which nobody knows. */
interface Layer {
  readonly kept: boolean;
  readonly changes: readonly Change[];
}

/**
 * A disk behind a page cache. A sync makes the changes before it durable. A failed one leaves each of them written or not
 * for good: Linux marks the pages clean all the same, so no later sync writes them (the "fsyncgate" of 2018).
 */
export class DiskModel {
  readonly #durable: Contents;
  /** What came after the first failed sync: its outcome is chosen anew for every image. */
  readonly #layers: Layer[] = [];
  #pending: Change[] = [];
  #count = 0;

  constructor(initial: Uint8Array) {
    this.#durable = new Contents(initial);
  }

  /** Operations so far. */
  get count(): number {
    return this.#count;
  }

  apply(operation: Operation): void {
    const index = this.#count++;
    if (operation.kind !== 'sync') {
      if (operation.kind === 'write' || !operation.failed) this.#pending.push({ index, operation });
      return;
    }
    const changes = this.#pending.filter((change) => change.index < operation.covers);
    this.#pending = this.#pending.filter((change) => change.index >= operation.covers);
    if (operation.failed || this.#layers.length > 0) this.#layers.push({ kept: !operation.failed, changes });
    else for (const change of changes) land(this.#durable, change.operation);
  }

  /** What the machine may find when the power comes back. */
  image(variant: Variant): Uint8Array<ArrayBuffer> {
    const found = this.#durable.clone();
    const random = new Random(typeof variant === 'number' ? variant : 0);
    for (const { kept, changes } of [...this.#layers, { kept: false, changes: this.#pending }]) {
      if (kept || variant === 'all') for (const change of changes) land(found, change.operation);
      else if (variant !== 'none') landSome(found, changes, random);
    }
    return found.copy();
  }
}

/** Does to `contents` what the operation did to the file. */
export function land(contents: Contents, operation: Operation): void {
  if (operation.kind === 'write') for (const piece of operation.pieces) contents.write(piece.bytes, piece.offset);
  else if (operation.kind === 'truncate' && !operation.failed) contents.truncate(operation.size);
}

/** Cuts a piece where sectors of the disk begin. */
export function sectorsOf(piece: Piece): Piece[] {
  const sectors: Piece[] = [];
  const { offset, bytes } = piece;
  for (let at = 0; at < bytes.byteLength; ) {
    const end = Math.min(at + SECTOR - ((offset + at) % SECTOR), bytes.byteLength);
    sectors.push({ offset: offset + at, bytes: bytes.subarray(at, end) });
    at = end;
  }
  return sectors;
}

/**
 * Lands a random part of the changes. Sizes follow the journal, which keeps its order: those of the first so many changes
 * hold, the rest do not. Data follows no order at all and is independent of the sizes, so a file may have grown over bytes
 * that never came: they are zero.
 */
function landSome(found: Contents, changes: readonly Change[], random: Random): void {
  const journalled = random.chance(0.5) ? changes.length : random.below(changes.length + 1);
  /** For each write, the size below which no later journalled truncate cut it off. */
  const cuts: number[] = new Array<number>(changes.length).fill(Infinity);
  let cut = Infinity;
  for (let i = journalled - 1; i >= 0; i--) {
    cuts[i] = cut;
    const { operation } = changes[i] as Change;
    if (operation.kind === 'truncate') cut = Math.min(cut, operation.size);
  }
  for (const { operation } of changes.slice(0, journalled)) {
    const size = operation.kind === 'truncate' ? operation.size : Math.max(found.size, endOf(operation));
    if (size !== found.size) found.truncate(size);
  }
  // Some images get nearly everything, some nearly nothing.
  const willing = random.fraction();
  for (const i of random.shuffle([...changes.keys()])) {
    const { operation } = changes[i] as Change;
    if (operation.kind !== 'write') continue;
    const end = Math.min(found.size, cuts[i] as number);
    for (const { offset, bytes } of chooseSectors(operation, willing, random)) {
      if (offset < end) found.write(bytes.subarray(0, end - offset), offset);
    }
  }
}

function chooseSectors(write: WriteOperation, willing: number, random: Random): readonly Piece[] {
  const way = random.fraction();
  if (way < 0.3) return random.chance(willing) ? write.pieces : [];
  const sectors = write.pieces.flatMap(sectorsOf);
  if (way < 0.6) return sectors.slice(0, random.below(sectors.length + 1));
  return sectors.filter(() => random.chance(willing));
}

function endOf(write: WriteOperation): number {
  let end = 0;
  for (const { offset, bytes } of write.pieces) end = Math.max(end, offset + bytes.byteLength);
  return end;
}
