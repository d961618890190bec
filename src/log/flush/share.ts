import type { LogStore } from '../store.ts';
import type { FlushBuilder, Lent } from './data.ts';
import { nextOffset } from './store-plan.ts';

/** What this rank writes of a flush. */
export interface Share {
  readonly data: readonly Uint8Array[];
  readonly lent: ReadonlyMap<Uint8Array, Lent>;
  readonly size: number;
  /** File offset of the first byte. */
  readonly offset: number;
  /** Of a large table each rank writes its own section. */
  readonly section: { readonly bytes: Uint8Array; readonly offset: number } | null;
}

/** What all ranks together put into a store. */
export interface Placed {
  readonly share: Share;
  readonly dataSize: number;
  readonly tableSize: number;
  /** The table, or only its header if the ranks write their sections themselves; null on ranks that write neither. */
  readonly table: Uint8Array | null;
  readonly isWhole: boolean;
  /** The data itself; empty where several ranks write it, each its own. */
  readonly data: readonly Uint8Array[];
  /** How many ranks the commit record names. */
  readonly parts: number;
}

/** One rank: its data, its table. */
export function placeAlone(store: LogStore, builder: FlushBuilder): Placed {
  const { data, lent, size } = builder;
  const table = size > 0 ? builder.table.finish() : null;
  const share = { data, lent, size, offset: nextOffset(store), section: null };
  return { share, dataSize: size, tableSize: table?.length ?? 0, table, isWhole: true, data, parts: 1 };
}
