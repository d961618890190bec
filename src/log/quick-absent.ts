import type { Io } from '../storage/drive.ts';
import type { MergedFit } from './merged-entry.ts';
import type { BlockSink, RawEntry, Table } from './table-read.ts';
import type { TierItem } from './tiers.ts';
import type { Visible } from './visible.ts';

// What `#quick` is in a browser: everything is read in the general way, and a page has a kilobyte less to load.

export function visibleRuns(..._given: readonly unknown[]): Visible | null {
  return null;
}

export function* placeRuns(..._given: readonly unknown[]): Io<void> {}

export class SharedSelections {
  blocks(_item: TierItem, table: Table, entry: RawEntry, sink: BlockSink, merged: MergedFit | undefined): void {
    table.blocks(entry, sink, merged);
  }
}
