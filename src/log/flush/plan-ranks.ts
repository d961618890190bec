import { joined } from '../../base/buffers.ts';
import { agreedError } from '../../comm/agreement.ts';
import type { Communicator } from '../../comm/communicator.ts';
import { headerSize, moveEntries, tableHeader } from '../format/table-write.ts';
import type { Log } from '../log.ts';
import { type LogStore, SMALL } from '../store.ts';
import { FlushBuilder } from './data.ts';
import { beginFlush, type FlushPlan, planStores, waitingIn } from './plan.ts';
import type { Placed } from './share.ts';
import { nextOffset } from './store-plan.ts';

/** A flush of several ranks, planned together: each says how much it has and learns where that goes. */
export function planTogether(log: Log, comm: Communicator, sequence: number, now: number): FlushPlan | undefined {
  const { stages, requests: own, isDirty } = waitingIn(log);
  const builder = new FlushBuilder(log, 0);
  const trouble = attempt(() => builder.addAll(stages));
  // The time is that of the first rank: the records of one commit in several files must say the same.
  const told = Float64Array.of(trouble ? 1 : 0, isDirty ? 1 : 0, own, comm.rank === 0 ? now : 0);
  const [troubles, dirty, requests, time] = comm.allreduce(told, 'sum') as unknown as [number, number, number, number];
  if (troubles > 0) throw agreedError(comm, trouble !== null, trouble?.error);
  if (requests === 0 && dirty === 0) return undefined;
  const placed = placeTogether(log.own, builder);
  let plans: ReturnType<typeof planStores> = { store: null, main: null };
  const failure = attempt(() => {
    plans = planStores(log, placed);
  });
  const { share, dataSize } = placed;
  const begun = beginFlush(log, stages);
  const indexing = { isAlone: false, parts: [] };
  return { sequence, time, requests, share, hasData: dataSize > 0, ...plans, failure, ...indexing, ...begun };
}

/** An error is kept, because the other ranks wait. */
function attempt(work: () => void): { readonly error: unknown } | null {
  try {
    work();
    return null;
  } catch (error) {
    return { error };
  }
}

/**
 * Data rank after rank, behind it the table with a section a rank: a small one is put together by the first rank, which may
 * have to merge it with others later on; of a large one each rank writes its own section.
 */
function placeTogether(store: LogStore, builder: FlushBuilder): Placed {
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
  if (dataSize === 0) return { share, dataSize, tableSize: 0, table: null, isWhole: true, data: [], parts: 0 };
  const placed = { share, dataSize, data: [], parts: comm.size };
  const header = headerSize(comm.size);
  const tableSize = header + sectionsSize;
  if (tableSize <= SMALL) {
    const sections = comm.gather(section, 0);
    const table = sections && joined([tableHeader(sections.map(({ length }) => length)), ...sections]);
    return { ...placed, tableSize, table, isWhole: true };
  }
  const sizes = comm.gather(new Uint8Array(Float64Array.of(section.length).buffer), 0);
  const table = sizes && tableHeader(sizes.map((bytes) => new Float64Array(bytes.slice().buffer)[0] as number));
  const place = { bytes: section, offset: start + dataSize + header + (before[1] as number) };
  return { ...placed, share: { ...share, section: place }, tableSize, table, isWhole: false };
}
