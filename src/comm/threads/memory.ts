import { H5LogError } from '../../base/errors.ts';

/** The shared memory of a run; structured clone passes it to the workers. */
export interface ThreadsMemory {
  readonly ranks: number;
  /** The state of the run and the mailboxes of all communicators. Grows as communicators are created. */
  readonly control: SharedArrayBuffer;
  /** Two chunks per rank, for messages that do not fit into a mailbox. A rank is in one collective at a time, so its communicators share them. */
  readonly bulk: SharedArrayBuffer;
}

/**
 * Bytes of a large message that are exchanged per round. Measured with 2 and 5 ranks on 2 cores: 32 KiB is slower; from 64 KiB to
 * 1 MiB the difference is within the noise.
 */
export const chunkSize = 256 * 1024;

/** Size of a mailbox: round, operation, argument (int32), length (float64), then the message if it is small. */
const mailboxSize = 512;
export const mailboxHeader = 24;
/** The longest message that travels inside a mailbox. */
export const inlineLimit = mailboxSize - mailboxHeader;

/** Index of a word in the header of a block, after the two of the free list: the last round that all ranks have published. */
export const completedRound = 2;
const blockHeader = 64;
const textLimit = 4096;
const growthStep = 64 * 1024;
// Address space only: pages are allocated as communicators are created.
const controlLimit = 256 * 2 ** 20;

// Indexes of int32 words in the control memory.
const failureState = 0;
const failureOwner = 1;
const failureRank = 2;
const failureKind = 3;
const failureLength = 4;
const allocationLock = 5;
const allocationEnd = 6;
const firstRankWord = 16;

const states = { none: 0, beingWritten: 1, complete: 2 };
const kinds = ['error', 'exit', 'abort'] as const;

/** Why a run failed: which rank failed, how, and the reason in words. */
interface Failure {
  /** The rank that reported the failure, or -1 for the thread that started the run. */
  readonly owner: number;
  readonly rank: number;
  readonly kind: (typeof kinds)[number];
  readonly reason: string;
}

interface Growable {
  grow(byteLength: number): void;
}

/** Allocates the memory for a run, including the mailboxes of the communicator of all ranks. */
export function allocateThreads(ranks: number): ThreadsMemory {
  const layout = new Layout(ranks);
  const size = roundUp(layout.blocks + blockSize(ranks), growthStep);
  // TypeScript's library for this target lacks growable buffers; Node has them since version 20.
  const Shared = SharedArrayBuffer as unknown as new (
    size: number,
    options: { maxByteLength: number },
  ) => SharedArrayBuffer;
  const control = new Shared(size, { maxByteLength: Math.max(controlLimit, 2 * size) });
  new Int32Array(control, 0, firstRankWord)[allocationEnd] = layout.blocks + blockSize(ranks);
  return { ranks, control, bulk: new SharedArrayBuffer(2 * chunkSize * ranks) };
}

/** Size in bytes of a block: the mailboxes of a communicator, two for each rank. */
export function blockSize(ranks: number): number {
  return blockHeader + 2 * mailboxSize * ranks;
}

/** Offset in bytes of a rank's mailbox in the block: its two are used in alternate rounds. */
export function mailboxOffset(rank: number, round: number): number {
  return blockHeader + (2 * rank + (round & 1)) * mailboxSize;
}

/** The state that the ranks of a run share: which have ended, why the run failed, and which memory is free. */
export class SharedRun {
  readonly ranks: number;
  readonly memory: ThreadsMemory;
  /** Offset of the mailboxes of the communicator of all ranks. */
  readonly firstBlock: number;
  readonly #words: Int32Array;
  readonly #text: Uint8Array;
  readonly #layout: Layout;

  constructor(memory: ThreadsMemory) {
    this.ranks = memory.ranks;
    this.memory = memory;
    this.#layout = new Layout(memory.ranks);
    this.firstBlock = this.#layout.blocks;
    this.#words = new Int32Array(memory.control, 0, this.#layout.text / 4);
    this.#text = new Uint8Array(memory.control, this.#layout.text, textLimit);
  }

  get failed(): boolean {
    return Atomics.load(this.#words, failureState) !== states.none;
  }

  /** Records why the run failed. Only the first failure is recorded; returns whether this was it. Waiting ranks check for it regularly. */
  fail(failure: Failure): boolean {
    const words = this.#words;
    if (Atomics.compareExchange(words, failureState, states.none, states.beingWritten) !== states.none) return false;
    words[failureOwner] = failure.owner;
    words[failureRank] = failure.rank;
    words[failureKind] = kinds.indexOf(failure.kind);
    // encodeInto cannot write into shared memory.
    const bytes = new TextEncoder().encode(failure.reason).subarray(0, textLimit);
    this.#text.set(bytes);
    words[failureLength] = bytes.length;
    Atomics.store(words, failureState, states.complete);
    Atomics.notify(words, failureState);
    return true;
  }

  failure(): Failure | undefined {
    const words = this.#words;
    if (!this.failed) return undefined;
    // Recording a failure takes microseconds, unless the thread was terminated just then.
    for (let tries = 0; Atomics.load(words, failureState) !== states.complete && tries < 1000; tries++) pause();
    const text = this.#text.slice(0, words[failureLength]);
    return {
      owner: words[failureOwner] ?? -1,
      rank: words[failureRank] ?? 0,
      kind: kinds[words[failureKind] ?? 0] ?? 'error',
      reason: new TextDecoder().decode(text),
    };
  }

  /** The rank's function has returned: it will not take part in any further collective. */
  setEnded(rank: number): void {
    Atomics.store(this.#words, firstRankWord + rank, 1);
  }

  hasEnded(rank: number): boolean {
    return Atomics.load(this.#words, firstRankWord + rank) === 1;
  }

  /** Allocates a zeroed block for the mailboxes of a communicator: one that was freed, or new memory. Returns its offset. */
  allocate(ranks: number): number {
    return this.#locked(() => {
      const words = this.#words;
      const head = this.#layout.freeWord(ranks);
      const size = blockSize(ranks);
      const free = words[head] ?? 0;
      if (free !== 0) {
        const block = new Int32Array(this.memory.control, free, size / 4);
        words[head] = block[0] ?? 0;
        block.fill(0);
        return free;
      }
      const start = words[allocationEnd] ?? 0;
      const { control } = this.memory;
      if (start + size > control.byteLength) {
        try {
          (control as unknown as Growable).grow(roundUp(start + size, growthStep));
        } catch (cause) {
          throw new H5LogError('COMM', 'split: too many communicators are open, close those that are done', { cause });
        }
      }
      words[allocationEnd] = start + size;
      return start;
    });
  }

  /** One rank has closed the communicator; the last one frees the block. */
  release(block: number, ranks: number): void {
    const counter = new Int32Array(this.memory.control, block, 2);
    if (Atomics.add(counter, 1, 1) + 1 < ranks) return;
    this.#locked(() => {
      const head = this.#layout.freeWord(ranks);
      counter[0] = this.#words[head] ?? 0;
      this.#words[head] = block;
    });
  }

  #locked<T>(action: () => T): T {
    const words = this.#words;
    while (Atomics.compareExchange(words, allocationLock, 0, 1) !== 0) {
      const failure = this.failed;
      // The thread that held the lock may have been terminated with the run.
      if (failure) throw new H5LogError('COMM', 'the run has failed');
      pause();
    }
    try {
      return action();
    } finally {
      Atomics.store(words, allocationLock, 0);
    }
  }
}

/** Byte offsets in the control memory: words of the run, of each rank and of each free list; then the failure text; then the blocks. */
class Layout {
  readonly text: number;
  readonly blocks: number;
  readonly #ranks: number;

  constructor(ranks: number) {
    this.#ranks = ranks;
    this.text = roundUp(4 * (firstRankWord + ranks + ranks + 1), 64);
    this.blocks = this.text + textLimit;
  }

  /** Index of the word that holds the first free block for communicators of `ranks` ranks. */
  freeWord(ranks: number): number {
    return firstRankWord + this.#ranks + ranks;
  }
}

const never = new Int32Array(new SharedArrayBuffer(4));

/** Lets other threads run. */
function pause(): void {
  Atomics.wait(never, 0, 0, 0.1);
}

function roundUp(size: number, step: number): number {
  return Math.ceil(size / step) * step;
}
