import { joined } from '../slab.ts';
import type { FlushBuilder, Lent } from './flush-data.ts';
import { type LogStore, SMALL } from './store.ts';
import { nextOffset } from './store-plan.ts';
import { headerSize, moveEntries, tableHeader } from './table-write.ts';

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
}

/** One rank: its data, its table. */
export function placeAlone(store: LogStore, builder: FlushBuilder): Placed {
  const { data, lent, size } = builder;
  const table = size > 0 ? builder.table.finish() : null;
  const share = { data, lent, size, offset: nextOffset(store), section: null };
  return { share, dataSize: size, tableSize: table?.length ?? 0, table, isWhole: true };
}

/**
 * Data rank after rank, behind it the table with a section a rank: a small one is put together by the first rank, which may
 * have to merge it with others later on; of a large one each rank writes its own section.
 */
export function placeTogether(store: LogStore, builder: FlushBuilder): Placed {
  const { comm } = store;
  const { data, lent, size } = builder;
  const section = builder.table.section();
  const before = comm.exscan(Float64Array.of(size, section.length));
  // Only the rank that appends knows where; the others add nothing to that sum.
  const sums = comm.allreduce(Float64Array.of(size, section.length, nextOffset(store)), 'sum');
  const [dataSize, sectionsSize, start] = sums as unknown as [number, number, number];
  const offset = start + (before[0] as number);
  moveEntries(section, offset);
  const share = { data, lent, size, offset, section: null };
  if (dataSize === 0) return { share, dataSize, tableSize: 0, table: null, isWhole: true };
  const header = headerSize(comm.size);
  const tableSize = header + sectionsSize;
  if (tableSize <= SMALL) {
    const sections = comm.gather(section, 0);
    const table = sections && joined([tableHeader(sections.map(({ length }) => length)), ...sections]);
    return { share, dataSize, tableSize, table, isWhole: true };
  }
  const sizes = comm.gather(new Uint8Array(Float64Array.of(section.length).buffer), 0);
  const table = sizes && tableHeader(sizes.map((bytes) => new Float64Array(bytes.slice().buffer)[0] as number));
  const place = { bytes: section, offset: start + dataSize + header + (before[1] as number) };
  return { share: { ...share, section: place }, dataSize, tableSize, table, isWhole: false };
}
