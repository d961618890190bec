import { allocateNumbers } from '../../base/buffers.ts';
import { ClassicTable, ClassicWriter, openTable } from './classic.ts';
import type { TableOptions } from './table.ts';
import type { OpenedTable, RawEntry } from './table-read.ts';
import { TableWriter } from './table-write.ts';

/** What a table must know of a dataset to rewrite its entries. */
interface EntryShape {
  readonly shape: readonly number[];
  readonly records: boolean;
}

/**
 * Several tables as one with one section, entries in ascending file offset (the order of writing). Entries of datasets that
 * are gone are left out; a selection that others referred to moves to the first of those that are left.
 */
export function mergeTables(
  tables: readonly { bytes: Uint8Array; address: number }[],
  shapeOf: (id: number) => EntryShape | undefined,
  options: TableOptions,
): Uint8Array {
  if (!import.meta.page && options.classic) {
    const writer = new ClassicWriter(options.classic);
    for (const { bytes, address } of tables)
      writer.copy(new ClassicTable(bytes, address), (id) => shapeOf(id) !== undefined);
    return writer.finish();
  }
  const found: { readonly table: OpenedTable; readonly raw: RawEntry; readonly dataset: EntryShape }[] = [];
  let isSorted = true;
  for (const { bytes, address } of tables) {
    const table = openTable(bytes, address);
    for (const raw of table.entries()) {
      const dataset = shapeOf(raw.id);
      if (!dataset) continue;
      isSorted &&= raw.offset >= (found.at(-1)?.raw.offset ?? 0);
      found.push({ table, raw, dataset });
    }
  }
  if (!isSorted) found.sort((a, b) => a.raw.offset - b.raw.offset);
  const writer = new TableWriter(options);
  for (const { table, raw, dataset } of found) {
    const { id, offset, size, times, count } = raw;
    const { shape, records } = dataset;
    // Most entries of small flushes: the coordinates stay what they are.
    const coordinates = table.plainBlock(raw, shape.length);
    if (coordinates) {
      writer.addPlainBlock({ id, shape, records, key: null, offset, size }, coordinates, raw.record);
      continue;
    }
    const rank = shape.length;
    const [starts, counts] = [allocateNumbers(count * rank), allocateNumbers(count * rank)];
    table.blocks(raw, { rank, starts, counts, at: 0 });
    const blocks = { rank, starts, counts, from: 0, to: count };
    const around = enclosing(shape, starts, counts);
    const entry = { id, shape: around, records, blocks, key: null, offset, size, times, elementSize: 0, filter: 0 };
    writer.add(entry);
  }
  return writer.finish();
}

/** The shape that encoded coordinates are measured by must hold every block, also after the dataset has shrunk. */
function enclosing(shape: readonly number[], starts: Float64Array, counts: Float64Array): number[] {
  const sizes = [...shape];
  const rank = sizes.length;
  for (let k = 0; k < starts.length; k++) {
    const end = (starts[k] as number) + (counts[k] as number);
    if (end > (sizes[k % rank] as number)) sizes[k % rank] = end;
  }
  return sizes;
}

/** Whether a dataset that is there refers to an entry of one that is gone. */
export function refersToGone(
  bytes: Uint8Array,
  address: number,
  shapeOf: (id: number) => EntryShape | undefined,
): boolean {
  for (const { id, holder } of openTable(bytes, address).entries()) {
    if (id !== holder && shapeOf(id) && !shapeOf(holder)) return true;
  }
  return false;
}
