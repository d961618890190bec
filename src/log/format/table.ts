/** Flags of the entries of a table. */
export const ENTRY = {
  multi: 0x01,
  encoded: 0x04,
  compressed: 0x08,
  reference: 0x10,
  record: 0x20,
} as const;

/** Size, dataset, flags (32 bits each), file offset and data size (64 bits each). */
export const ENTRY_HEADER = 28;

/** An entry's own size and its data's are 32-bit integers in the original; what is larger is split. */
export const MOST_ENTRY_BYTES = 2 ** 31 - 1;
export const MOST_DATA_BYTES = 2 ** 31 - 1;

export interface TableOptions {
  /** One entry for all blocks of a dataset that were posted one after the other, instead of one a block. */
  readonly merge: boolean;
  /** Starts and counts of many blocks as one number each. */
  readonly encode: boolean;
  /** Entries with the same selection refer to the first of them. */
  readonly share: boolean;
  /** Entries of at least this many blocks are compressed; Infinity: none. */
  readonly compressFrom: number;
  /** Entries of the classic format, in this byte order; what is above does not apply to them. */
  readonly classic?: 'little' | 'big' | undefined;
}

/** Blocks [from, to) of flat lists: a selection as a table entry stores it. */
export interface EntryBlocks {
  readonly rank: number;
  readonly starts: Float64Array;
  readonly counts: Float64Array;
  readonly from: number;
  readonly to: number;
}

export interface NewEntry {
  readonly id: number;
  /** Shape of the dataset, from which the steps of encoded coordinates are made. */
  readonly shape: readonly number[];
  /** Dimension 0 is unlimited: entries within one record name it once. */
  readonly records: boolean;
  readonly blocks: EntryBlocks;
  /** The same object for selections that are the same: they are then compared only once. */
  readonly key: object | null;
  readonly offset: number;
  readonly size: number;
  /** For an entry of the original that is rewritten: so many elements were written to its only block, which takes no bytes. */
  readonly times?: number;
  /** Bytes of an element. */
  readonly elementSize: number;
  /** What was done to the data: 0 nothing, 1 deflate, 2 other filters of the dataset. */
  readonly filter: number;
  /** The blocks come from a selection of points. */
  readonly points?: boolean;
}
