import { H5LogError } from '../../base/errors.ts';
import { solo } from '../../comm/solo.ts';
import type { Structure } from '../../hdf5/write/structure.ts';
import { openTable } from '../../log/format/classic.ts';
import type { CommitRecord } from '../../log/format/commit-record.ts';
import { type LogCounts, readCounts } from '../../log/format/log-group.ts';
import { LogStore, type Series, type TierItem } from '../../log/store.ts';
import type { Io } from '../../storage/io.ts';
import type { ByteStorage } from '../../storage/storage.ts';
import type { Problem, StoredRanges } from './checked-data.ts';
import { CheckedFile } from './checked-file.ts';
import { CheckedObjects, type LoggedObject, problemOf, type Walked } from './checked-objects.ts';
import { type History, historyOf, mustBeDamage, type State, States } from './commit-history.ts';
import { CommitSums, type Damage, type Range } from './commit-sums.ts';

/** A state of one file, opened. */
export interface OpenState {
  readonly structure: Structure;
  readonly counts: LogCounts | undefined;
}

/** One file of those that a log consists of: what is on record about it, and what is damaged in it. */
export class VerifiedStore {
  readonly file: CheckedFile;
  readonly states: States;
  readonly history: History;
  readonly damages: Damage[] = [];
  readonly objects = new CheckedObjects();

  /** File offset of the end of the first commit that has no sums; Infinity: all have. */
  readonly summedTo: number;
  /** Root groups of the states on record. */
  readonly roots: ReadonlySet<number>;
  readonly #tables = new CheckedTables();

  private constructor(file: CheckedFile, states: States, history: History) {
    this.file = file;
    this.states = states;
    this.history = history;
    const { records } = history;
    this.summedTo = records.reduce((to, { kind, end }) => (kind === 0 ? Math.min(to, end) : to), Infinity);
    this.roots = new Set(records.map(({ root }) => root));
  }

  static async open(storage: ByteStorage): Promise<VerifiedStore> {
    const file = await CheckedFile.open(storage);
    const states = new States(file);
    return new VerifiedStore(file, states, await historyOf(states));
  }

  get name(): string {
    return this.file.name;
  }

  get records(): readonly CommitRecord[] {
    return this.history.records;
  }

  /** Why the commits had to be searched for. */
  get troubles(): Problem[] {
    const { trouble } = this.history;
    if (!trouble) return [];
    const what = this.file.superblock ? 'the present state cannot be read' : 'the superblock is lost';
    return [{ offset: trouble.offset ?? 0, what: `${what}: ${trouble.message}` }];
  }

  /** Whether anything before a file offset is known to be damaged. */
  isDamagedBefore(end: number): boolean {
    return this.damages.some(({ start }) => start < end);
  }

  /** Whether some commit that ends at or before `end` has sums. */
  hasSums(end: number): boolean {
    return this.records.some((record) => record.end <= end && record.kind !== 0);
  }

  /** Looks at every byte of all commits up to a file offset. */
  async sum(end: number, isMain: boolean, done: (bytes: number) => void, signal?: AbortSignal): Promise<void> {
    const place = (record: CommitRecord): Promise<Range | null> => this.#placeOfRecords(record);
    const sums = new CommitSums(this.file, this.records, { isMain, place, done });
    for (const [i, record] of this.records.entries()) {
      signal?.throwIfAborted();
      if (record.end > end) continue;
      this.damages.push(...(await sums.check(i)));
    }
    await this.#excuse();
  }

  /**
   * Other software changes headers in place, with right checksums of their own: that is no damage. It did if the file does not end
   * where the last commit does, or if what lies between two commits is needed by the first of them.
   */
  async #excuse(): Promise<void> {
    const first = this.records.findIndex((record) => this.damages.some(isIn(record)));
    let last = this.records.length - 1;
    for (; last >= first && first >= 0; last--) if (await this.#wasChangedAfter(last)) break;
    if (last < first || first < 0) return;
    const { end } = this.records[last] as CommitRecord;
    const kept = this.damages.filter((damage) => damage.in === 'data' || damage.start >= end);
    this.damages.splice(0, this.damages.length, ...kept);
  }

  async #wasChangedAfter(index: number): Promise<boolean> {
    const record = this.records[index] as CommitRecord;
    const next = this.records[index + 1];
    const { present } = this.states;
    if (next && next.start === record.end) return false;
    if (!next && (!present || (present.end === record.end && present.root === record.root))) return false;
    const state = next || !present ? record : present;
    const problems = async (end: number): Promise<number> => {
      try {
        const structure = await this.file.run(this.states.open(state, end));
        return (await this.file.run(new CheckedObjects().walk(structure, true))).problems.length;
      } catch (error) {
        mustBeDamage(error);
        return 1;
      }
    };
    return (await problems(this.file.end)) === 0 && (!next || (await problems(record.end)) > 0);
  }

  async #placeOfRecords({ root, end }: CommitRecord): Promise<Range | null> {
    try {
      return await this.file.run(this.states.recordsRange({ root, end }));
    } catch (error) {
      mustBeDamage(error);
      return null;
    }
  }

  /** Opens a state; a problem if that cannot be done. */
  async open(state: State): Promise<OpenState | Problem> {
    try {
      const structure = await this.file.run(this.states.open(state));
      if (structure.root.kind !== 'group')
        return { offset: this.file.base + state.root, what: 'the root object is not a group' };
      return { structure, counts: await this.file.run(readCounts(structure)) };
    } catch (error) {
      return problemOf(mustBeDamage(error), 'the root group', '/', this.file.base + state.root);
    }
  }

  /** Every object of a state, and whether what has no checksum of its own lies in damaged bytes. */
  async walk({ structure }: OpenState, isLog: boolean): Promise<Walked> {
    const walked = await this.file.run(this.objects.walk(structure, isLog));
    const suspect = this.damages.filter(({ in: where }) => where === 'structure');
    for (const heap of walked.heaps) {
      const at = this.file.base + heap;
      const hit = suspect.find(({ start, end }) => at >= start && at < end);
      if (hit)
        walked.problems.push({ offset: at, what: `a heap of attributes lies in the ${hit.what}`, mismatch: true });
    }
    const bad = this.damages.filter(({ in: where }) => where === 'data');
    if (bad.length > 0) for (const each of walked.published) walked.problems.push(...this.#changed(each, bad));
    return walked;
  }

  /** What other programs see, and may have changed: nothing tells that from damage. */
  #changed({ ranges, what, path }: StoredRanges, bad: readonly Damage[]): Problem[] {
    for (let i = 0; i < ranges.length; i += 2) {
      const here = {
        start: this.file.base + (ranges[i] as number),
        end: this.file.base + (ranges[i + 1] as number),
      };
      const hit = bad.find((damage) => overlap(damage, here));
      if (!hit) continue;
      const text = `${what(i / 2)} was changed or damaged since commit ${hit.sequence}`;
      return [{ offset: Math.max(hit.start, here.start), what: text, object: path, mismatch: true }];
    }
    return [];
  }

  /** Logs, tables and records of a state. */
  async load({ structure, counts }: OpenState, place: number, end: number): Promise<LogStore | Problem> {
    const store = new LogStore(place, solo());
    try {
      if (!counts) throw new H5LogError('FORMAT', 'the counts of the log are missing');
      store.attach({ storage: this.file.storage, structure, counts });
      store.end = end;
      await this.file.run(load(store));
    } catch (error) {
      return problemOf(mustBeDamage(error), 'the log', '/_LOG', this.file.base + structure.root.address);
    }
    const { records } = store.committed;
    const hit = this.damages.find(
      (damage) =>
        damage.in === 'record' && records.some(({ address }) => address >= damage.start && address < damage.end),
    );
    if (hit) return { offset: hit.start, what: hit.what };
    return store;
  }

  /** The numbers of the datasets that a table has entries of. */
  *datasetsIn(store: LogStore, item: TierItem): Io<Iterable<number>> {
    return yield* this.#tables.datasetsIn(store, item);
  }

  async tables(store: LogStore, datasets: ReadonlyMap<number, LoggedObject>): Promise<Problem[]> {
    return this.file.run(this.#tables.check(store, datasets, this.damages));
  }
}

function* load(store: LogStore): Io<void> {
  yield* store.load();
  yield* store.everyNumbered();
  store.history();
}

const isIn =
  ({ start, end }: CommitRecord) =>
  (damage: Damage): boolean =>
    damage.in !== 'data' && damage.start >= start && damage.end <= end;

export const isProblem = (value: object): value is Problem => 'what' in value;

/** What a look at a table found, by dataset; tables never change, so one look is enough for all states. */
interface Look {
  /** The table itself cannot be read. */
  readonly trouble: Problem | null;
  /** Ranges of data that entries of each dataset are in, joined where they touch. */
  readonly data: ReadonlyMap<number, readonly Range[]>;
}

/** The tables of one file, in one state after the other. */
class CheckedTables {
  readonly #looks = new Map<number, Look>();

  /** Every entry must lie inside the log, and in nothing that is known to be damaged. */
  *check(store: LogStore, datasets: ReadonlyMap<number, LoggedObject>, damages: readonly Damage[]): Io<Problem[]> {
    const shared = store.committed;
    const all = yield* this.#checkLog(store, shared, shared.logs, datasets, damages);
    for (const series of (yield* store.everyNumbered()).values())
      all.push(...(yield* this.#checkLog(store, series, [...shared.logs, ...series.logs], datasets, damages)));
    return all;
  }

  *#checkLog(
    store: LogStore,
    { tables }: Series,
    logs: readonly TierItem[],
    datasets: ReadonlyMap<number, LoggedObject>,
    damages: readonly Damage[],
  ): Io<Problem[]> {
    const inLog = joined(logs.map(({ address, size, written = address }) => ({ start: written, end: written + size })));
    const bad = damages.filter(({ in: where }) => where === 'data');
    const suspect = damages.filter(({ in: where }) => where === 'structure');
    const problems: Problem[] = [];
    for (const item of tables) {
      const here = { start: item.address, end: item.address + item.size };
      const hit = suspect.find((damage) => overlap(damage, here));
      if (hit) problems.push({ offset: here.start, what: `a table lies in the ${hit.what}`, mismatch: true });
      const look = yield* this.#look(store, item);
      if (look.trouble) problems.push(look.trouble);
      for (const [id, ranges] of look.data) {
        const dataset = datasets.get(id);
        // Entries of datasets that were deleted stay in their tables.
        if (dataset === undefined) continue;
        const { path: object, floor, refers } = dataset;
        const outside = ranges.find(
          (range) => !inLog.some(({ start, end }) => range.start >= start && range.end <= end),
        );
        if (outside) {
          const what = `${object}: bytes ${outside.start} to ${outside.end}, which a table names, are not inside the log`;
          problems.push({ offset: outside.start, what, object });
        }
        const read = ranges.filter(({ end }) => end > floor || (refers && store.isMoved));
        const damage = bad.find((candidate) => read.some((range) => overlap(candidate, range)));
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
      const bytes = item.bytes ?? (yield* store.data.file.readCopy(item.address, item.size, 'metadata table'));
      for (const { id, offset, size } of openTable(bytes, item.address).entries()) {
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
