import type { CreateOptions } from 'h5log';

export const STORAGES = ['memory', 'faulty', 'delayed', 'async', 'node'] as const;

export interface Setup {
  readonly storage: (typeof STORAGES)[number];
  readonly create: CreateOptions;
  readonly seed: number;
}

export interface Step {
  readonly kind: StepKind;
  readonly seed: number;
}

/** How often each kind of step comes, in programs of different character. */
const plain = {
  create: 6,
  write: 26,
  shared: 5,
  many: 8,
  resize: 7,
  attribute: 3,
  remove: 2,
  move: 2,
  hardLink: 1,
  flushSync: 5,
  flush: 5,
  flushLater: 8,
  settle: 3,
  failing: 5,
  read: 14,
  readLater: 8,
  readMany: 5,
  reopen: 3,
  reader: 3,
  live: 4,
  commits: 2,
  burst: 0.3,
  storm: 2,
};
export type StepKind = keyof typeof plain;
export const WEIGHTS: Readonly<Record<string, Readonly<Record<StepKind, number>>>> = {
  plain,
  /** Much is under way at the same time, and fails. */
  races: {
    ...plain,
    resize: 16,
    flushLater: 22,
    flush: 1,
    flushSync: 3,
    failing: 12,
    readLater: 16,
    shared: 2,
    many: 3,
    reopen: 1,
    reader: 1,
    storm: 20,
  },
  /** Few datasets, many flushes: tables and logs are merged again and again. */
  tiers: { ...plain, create: 1, burst: 8, remove: 4, reopen: 8 },
  /** Selections that tables can share, and records. */
  sharing: { ...plain, create: 12, shared: 40, write: 8, flushSync: 12, remove: 6 },
};
