import * as ENTRY from '../format/entry-flags.ts';
import type { MergedFit } from '../format/original.ts';
import type { BlockSink, RawEntry, Table } from '../format/table-read.ts';
import type { TierItem } from '../store.ts';

/** Selections that are kept, and how large one may be in blocks times dimensions. */
const KEPT = 16;
const MOST = 2 ** 17;

interface Kept {
  /** Not the table itself, which may be large and forgotten meanwhile. */
  readonly item: TierItem;
  /** Where the selection is in the table, and how it was read. */
  readonly at: number;
  readonly rank: number;
  readonly isRecord: boolean;
  readonly starts: Float64Array;
  readonly counts: Float64Array;
}

/** Blocks of selections that several entries refer to: a simulation writes hundreds of variables cut in the same few ways. */
export class SharedSelections {
  readonly #kept: Kept[] = [];
  #next = 0;

  /** Works out the blocks of an entry, as the table does. */
  blocks(item: TierItem, table: Table, entry: RawEntry, sink: BlockSink, merged: MergedFit | undefined): void {
    const { rank, starts, counts, at } = sink;
    const length = entry.count * rank;
    if (merged || (entry.flags & ENTRY.reference) === 0 || length > MOST) {
      table.blocks(entry, sink, merged);
      return;
    }
    const isRecord = entry.record >= 0;
    const known = this.#kept.find(
      (kept) => kept.at === entry.body.at && kept.item === item && kept.rank === rank && kept.isRecord === isRecord,
    );
    if (known) {
      starts.set(known.starts, at);
      counts.set(known.counts, at);
      // The same selection in another record.
      if (isRecord) for (let i = 0, k = at; i < entry.count; i++, k += rank) starts[k] = entry.record;
      return;
    }
    table.blocks(entry, sink);
    const kept = { starts: starts.slice(at, at + length), counts: counts.slice(at, at + length) };
    this.#kept[this.#next] = { item, at: entry.body.at, rank, isRecord, ...kept };
    this.#next = (this.#next + 1) % KEPT;
  }
}
