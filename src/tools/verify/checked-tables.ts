import { Table } from '../../log/format/table-read.ts';
import type { LogStore, TierItem } from '../../log/store.ts';
import type { Io } from '../../storage/io.ts';
import { type Problem, problemOf } from './checked-objects.ts';
import { mustBeDamage } from './commit-history.ts';
import type { Damage, Range } from './commit-sums.ts';

/** What a look at a table found, by dataset; tables never change, so one look is enough for all states. */
interface Look {
  /** The table itself cannot be read. */
  readonly trouble: Problem | null;
  /** Ranges of data that entries of each dataset are in, joined where they touch. */
  readonly data: ReadonlyMap<number, readonly Range[]>;
}

/** The tables of one file, in one state after the other. */
export class CheckedTables {
  readonly #looks = new Map<number, Look>();

  /** Every entry must lie inside the log, and in nothing that is known to be damaged. */
  *check(store: LogStore, datasets: ReadonlyMap<number, string>, damages: readonly Damage[]): Io<Problem[]> {
    const { logs, tables } = store.committed;
    const inLog = joined(logs.map(({ address, size }) => ({ start: address, end: address + size })));
    const bad = damages.filter(({ in: where }) => where === 'data');
    const suspect = damages.filter(({ in: where }) => where === 'structure');
    const problems: Problem[] = [];
    for (const item of tables) {
      const here = { start: item.address, end: item.address + item.size };
      const hit = suspect.find((damage) => overlap(damage, here));
      if (hit) problems.push({ offset: here.start, what: `a table lies in the ${hit.what}` });
      const look = yield* this.#look(store, item);
      if (look.trouble) problems.push(look.trouble);
      for (const [id, ranges] of look.data) {
        const object = datasets.get(id);
        // Entries of datasets that were deleted stay in their tables.
        if (object === undefined) continue;
        const outside = ranges.find(
          (range) => !inLog.some(({ start, end }) => range.start >= start && range.end <= end),
        );
        if (outside) {
          const what = `${object}: bytes ${outside.start} to ${outside.end}, which a table names, are not inside the log`;
          problems.push({ offset: outside.start, what, object });
        }
        const damage = bad.find((candidate) => ranges.some((range) => overlap(candidate, range)));
        if (damage) problems.push({ offset: damage.start, what: `${object} uses ${damage.what}`, object });
      }
    }
    return problems;
  }

  /** The numbers of the datasets that a table has entries of. */
  *datasetsIn(store: LogStore, item: TierItem): Io<Iterable<number>> {
    return (yield* this.#look(store, item)).data.keys();
  }

  *#look(store: LogStore, item: TierItem): Io<Look> {
    const known = this.#looks.get(item.address);
    if (known) return known;
    const data = new Map<number, Range[]>();
    let trouble: Problem | null = null;
    try {
      const bytes = item.bytes ?? new Uint8Array(item.size);
      if (!item.bytes) yield* store.data.file.readInto(bytes, item.address, 'metadata table');
      for (const { id, offset, size } of new Table(bytes, item.address).entries()) {
        const ranges = data.get(id);
        const last = ranges?.at(-1);
        if (!ranges) data.set(id, [{ start: offset, end: offset + size }]);
        else if (last && last.end === offset) ranges[ranges.length - 1] = { start: last.start, end: offset + size };
        else ranges.push({ start: offset, end: offset + size });
      }
    } catch (error) {
      trouble = problemOf(mustBeDamage(error), 'a table of the log', '/_LOG', item.address);
    }
    const look = { trouble, data };
    this.#looks.set(item.address, look);
    return look;
  }
}

const overlap = (a: Range, b: Range): boolean => a.start < b.end && b.start < a.end;

/** Ranges in ascending order, those that touch as one. */
function joined(ranges: readonly Range[]): Range[] {
  const list: Range[] = [];
  for (const range of [...ranges].sort((a, b) => a.start - b.start)) {
    const last = list.at(-1);
    if (last && range.start <= last.end)
      list[list.length - 1] = { start: last.start, end: Math.max(last.end, range.end) };
    else list.push(range);
  }
  return list;
}
