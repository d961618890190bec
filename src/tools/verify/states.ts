import { H5LogError } from '../../base/errors.ts';
import { hasSubfiles } from '../../connector/open-log.ts';
import type { Structure } from '../../hdf5/write/structure.ts';
import { type CommitRecord, type SubfileState, subfileState } from '../../log/format/commit-record.ts';
import { readToken } from '../../log/format/log-group.ts';
import type { LogStore } from '../../log/store.ts';
import type { Io } from '../../storage/io.ts';
import { readingLog } from '../inside.ts';
import type { Problem } from './checked-data.ts';
import { problemOf, type Walked } from './checked-objects.ts';
import { mustBeDamage, type State } from './commit-history.ts';
import { isProblem, type OpenState, type VerifiedStore } from './store.ts';

/** A state of the whole log. */
export interface LogState extends State {
  readonly sequence: number;
  /** null: other software made it. */
  readonly record: CommitRecord | null;
}

/** A file and its subfiles; null for one that is missing. */
export interface Stores {
  readonly main: VerifiedStore;
  readonly subfiles: readonly (VerifiedStore | null)[];
}

/** The states of a file, oldest first. One that other software made counts as a commit more. */
export function statesOf({ history, states, file }: VerifiedStore): LogState[] {
  const { records, counts } = history;
  const list: LogState[] = records.map((record) => ({
    sequence: record.sequence,
    root: record.root,
    end: record.end,
    record,
  }));
  const { present } = states;
  const last = list.at(-1);
  const isKnown = present && list.some(({ root }) => root === present.root);
  // Changed in place: the same commit, with more behind it.
  if (present && last && last.root === present.root && present.end > last.end)
    list[list.length - 1] = { ...last, end: present.end };
  if (present && !isKnown && (counts || records.length > 0))
    list.push({ ...present, sequence: (records.at(-1)?.sequence ?? -1) + 1, record: null });
  return list.filter(({ end }) => end <= file.size);
}

/** Which state of each subfile belongs to a state. */
export function partsOf({ record }: LogState, { subfiles }: Stores): (SubfileState | null)[] {
  return subfiles.map((store, g) => {
    const part = record?.ranks[g];
    return part ? subfileState(part) : (store?.states.present ?? null);
  });
}

/** Whether all bytes of a state have been summed. */
export function isSummed(state: LogState, stores: Stores): boolean {
  if (!state.record || state.end >= stores.main.summedTo) return false;
  return partsOf(state, stores).every((part, g) => {
    const store = stores.subfiles[g];
    return part && store?.roots.has(part.root) && part.end < store.summedTo;
  });
}

/** Whether anything is known to be damaged that a state may use. */
export function isTouched(state: LogState, stores: Stores): boolean {
  if (stores.main.isDamagedBefore(state.end) || stores.main.history.trouble) return true;
  return partsOf(state, stores).some((part, g) => {
    const store = stores.subfiles[g];
    return !store || !part || store.history.trouble || store.isDamagedBefore(part.end);
  });
}

/** Looks at everything that a state consists of. `thorough`: the selections of all entries are worked out, too. */
export async function checkState(state: LogState, stores: Stores, thorough: boolean): Promise<Problem[]> {
  const { main } = stores;
  const opened = await main.open(state);
  if (isProblem(opened)) return [opened];
  const { counts } = opened;
  const walked = await main.walk(opened, counts !== undefined);
  const { problems } = walked;
  if (!counts) {
    if (main.records.length > 0) problems.push({ what: 'the counts of the log (_int_att) are missing', object: '/' });
    return problems;
  }
  const own = await main.load(opened, 0, state.end);
  if (isProblem(own)) return [...problems, own];
  const loaded: LogStore[] = [];
  const within: VerifiedStore[] = [];
  if (!hasSubfiles(counts)) {
    loaded.push(own);
    within.push(main);
    problems.push(...(await main.tables(own, walked.datasets)));
  } else {
    for (const [g, part] of partsOf(state, stores).entries()) {
      const store = stores.subfiles[g];
      const found = store && part ? await checkSubfile(opened, own, store, part, g, walked, problems) : null;
      if (!store) problems.push({ what: `subfile ${g} is missing` });
      if (!store || !found) continue;
      loaded.push(found);
      within.push(store);
    }
    if (loaded.length < stores.subfiles.length) return problems;
  }
  if (thorough) problems.push(...(await main.file.run(decodeAll(opened, own, loaded, within))));
  return problems;
}

async function checkSubfile(
  main: OpenState,
  own: LogStore,
  store: VerifiedStore,
  part: SubfileState,
  g: number,
  { datasets }: Walked,
  problems: Problem[],
): Promise<LogStore | null> {
  const named = (problem: Problem): Problem => ({ ...problem, what: `subfile ${store.name}: ${problem.what}` });
  if (part.end > store.file.size) {
    problems.push({
      offset: store.file.size,
      what: `subfile ${store.name} has ${store.file.size} bytes, but the commit needs ${part.end}`,
    });
    return null;
  }
  const opened = await store.open(part);
  if (isProblem(opened)) {
    problems.push(named(opened));
    return null;
  }
  problems.push(...(await store.walk(opened, true)).problems.map(named));
  const loaded = await store.load(opened, g, part.end);
  if (isProblem(loaded)) {
    problems.push(named(loaded));
    return null;
  }
  problems.push(...(await store.tables(loaded, datasets)).map(named));
  const reason = await store.file.run(whyOfAnother(main, opened.structure, own, loaded));
  if (reason) problems.push(named({ what: reason }));
  return loaded;
}

/** A subfile of another file, or of a copy of this one that went its own way. */
function* whyOfAnother(main: OpenState, structure: Structure, own: LogStore, store: LogStore): Io<string | null> {
  const token = yield* readToken(main.structure);
  const theirs = yield* readToken(structure);
  if (token ? !theirs || token.some((byte, i) => byte !== theirs[i]) : theirs) return 'it belongs to another file';
  const last = store.commit();
  if (!last || own.commit(last.sequence)?.time === last.time) return null;
  return `its commit ${last.sequence} of ${new Date(last.time).toISOString()} is not a commit of this file`;
}

/** Works out the selection of every entry, a table at a time. */
function* decodeAll(
  { structure }: OpenState,
  main: LogStore,
  stores: readonly LogStore[],
  within: readonly VerifiedStore[],
): Io<Problem[]> {
  const problems: Problem[] = [];
  try {
    const log = readingLog(structure, main, stores);
    const datasets = yield* log.everyDataset();
    const { committed } = log.tables;
    if (log.layout) {
      for (const dataset of datasets.values()) {
        try {
          yield* log.tables.index(dataset, null, committed);
        } catch (error) {
          problems.push(problemOf(mustBeDamage(error), dataset.path, dataset.path));
        }
      }
      return problems;
    }
    for (const [g, store] of stores.entries()) {
      for (const item of store.committed.tables) {
        for (const id of yield* (within[g] as VerifiedStore).datasetsIn(store, item)) {
          const dataset = datasets.get(id);
          if (!dataset) continue;
          try {
            yield* log.tables.index(dataset, null, { ...committed, items: [item], order: null });
          } catch (error) {
            problems.push(problemOf(mustBeDamage(error), dataset.path, dataset.path, item.address));
          }
        }
      }
    }
  } catch (error) {
    if (!(error instanceof H5LogError)) throw error;
    problems.push(problemOf(mustBeDamage(error), 'the log', '/_LOG'));
  }
  return problems;
}
