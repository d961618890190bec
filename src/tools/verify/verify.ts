import { openForReading, realFile, subfilesOf } from '#platform';
import { H5LogError, isH5LogError } from '../../base/errors.ts';
import { ANY, CALLBACK, checkOptions, FLAG, PATH } from '../../base/options.ts';
import { hasSubfiles } from '../../connector/open-log.ts';
import { readToken } from '../../log/format/log-group.ts';
import { MOST_SUBFILES, tokenText } from '../../log/subfiles.ts';
import { httpStorage } from '../../storage/http.ts';
import type { ByteStorage, Subfiles } from '../../storage/storage.ts';
import type { Problem } from './checked-data.ts';
import { mustBeDamage } from './commit-history.ts';
import type { Damage } from './commit-sums.ts';
import { type Repaired, repair } from './repair.ts';
import { checkState, isSummed, isTouched, type LogState, partsOf, type Stores, statesOf } from './states.ts';
import { VerifiedStore } from './store.ts';

export interface VerifyProgress {
  /** Committed bytes that were looked at, of how many. */
  readonly bytes: number;
  readonly total: number;
}

export interface VerifyOptions {
  /**
   * Write the newest state whose data is intact to a file of this name. Structure that does not match its checksum is kept if it can be
   * read: other programs change attributes in place.
   */
  repairTo?: string | URL;
  /** With `repairTo`: only a state all of whose bytes match their checksums. */
  strict?: boolean;
  /** Replace that file if it exists. */
  force?: boolean;
  progress?: (done: VerifyProgress) => void;
  signal?: AbortSignal;
}

export interface VerifiedCommit {
  readonly sequence: number;
  /** null: a state that other software made. */
  readonly time: Date | null;
  /** Everything that this state of the file consists of is as it was written. */
  readonly good: boolean;
  readonly problems: readonly string[];
}

export interface VerifyResult {
  readonly path: string;
  /** Nothing is wrong, in no commit. */
  readonly sound: boolean;
  /** Whether there are checksums to compare with; without them only structure and tables are looked at. */
  readonly checksums: boolean;
  /** Chunks of ordinary datasets whose fletcher32 checksum was compared. */
  readonly chunkSums: number;
  /** Oldest first; none in a file without a log. */
  readonly commits: readonly VerifiedCommit[];
  readonly problems: readonly Problem[];
  /** The newest commit that is good; null if there is none. */
  readonly newestSound: number | null;
  /** Size of the file, with its subfiles. */
  readonly bytes: number;
  readonly seconds: number;
  /** What `repairTo` wrote. */
  readonly repaired?: Repaired;
}

/**
 * Looks at every committed byte of a file: structure, tables, the checksums of all commits. Damage is what it reports, not what it
 * throws.
 *
 * ```ts
 * const { sound, problems } = await verify('run.h5');
 * await verify('run.h5', { repairTo: 'run-repaired.h5' });
 * ```
 */
export async function verify(source: string | URL | ByteStorage, options: VerifyOptions = {}): Promise<VerifyResult> {
  const began = performance.now();
  const {
    signal,
    repairTo,
    strict = false,
    force = false,
  } = checkOptions('verify', options, {
    repairTo: PATH,
    strict: FLAG,
    force: FLAG,
    progress: CALLBACK,
    signal: ANY,
  });
  signal?.throwIfAborted();
  const isWeb = /^https?:\/\//i.test(String(source));
  const isPath = typeof source === 'string' || source instanceof URL;
  if (repairTo !== undefined) await mayWrite(repairTo, force, isPath && !isWeb ? source : null);
  const storage = !isPath ? source : isWeb ? httpStorage(source) : openForReading(source);
  const opened: ByteStorage[] = isPath ? [storage] : [];
  try {
    const stores = await openStores(storage, isPath && !isWeb ? subfilesOf(source) : null, opened);
    const verified = await new Verification(stores, options).run();
    const best = verified.states.findLast(({ commit }) => commit.good)?.state;
    const kept = strict ? best : verified.states.findLast(({ readable }) => readable)?.state;
    const made = repairTo === undefined ? {} : { repaired: await repair(stores, kept, repairTo, force, signal) };
    const bytes = [stores.main, ...stores.subfiles].reduce((sum, store) => sum + (store?.file.size ?? 0), 0);
    return {
      path: storage.name,
      sound: verified.problems.length === 0,
      checksums: stores.main.records.some(({ kind }) => kind !== 0),
      chunkSums: stores.main.objects.chunkSums,
      commits: verified.states.map(({ commit }) => commit),
      problems: verified.problems,
      newestSound: best?.sequence ?? null,
      bytes,
      seconds: (performance.now() - began) / 1000,
      ...made,
    };
  } finally {
    for (const each of opened) await each.close();
  }
}

/** Before everything is looked at, not after. */
async function mayWrite(to: string | URL, force: boolean, from: string | URL | null): Promise<void> {
  if (from !== null && realFile(from) === realFile(to))
    throw new H5LogError('OPTION', `${String(to)} is the file itself; a repair is written to another one`);
  if (force) return;
  try {
    await openForReading(to).close();
  } catch (error) {
    if (isH5LogError(error, 'NOT_FOUND')) return;
    throw error;
  }
  throw new H5LogError('EXISTS', `${String(to)} exists already`, { file: String(to) });
}

async function openStores(storage: ByteStorage, beside: Subfiles | null, opened: ByteStorage[]): Promise<Stores> {
  const main = await VerifiedStore.open(storage);
  const { counts } = main.history;
  const subfiles: (VerifiedStore | null)[] = [];
  if (counts && hasSubfiles(counts)) {
    if (!beside) throw new H5LogError('UNSUPPORTED', 'the data of this file is in subfiles: verify needs its path');
    const token = await tokenOf(main);
    for (let g = 0; g < Math.min(counts.subfiles, MOST_SUBFILES); g++) {
      const found = beside.open(g, false) ?? (token === null ? undefined : beside.open(g, false, token));
      if (found) opened.push(found);
      subfiles.push(found ? await VerifiedStore.open(found) : null);
    }
  }
  return { main, subfiles };
}

async function tokenOf(main: VerifiedStore): Promise<string | null> {
  const state = main.states.present ?? main.records.at(-1);
  try {
    const token = state && (await main.file.run(readToken(await main.file.run(main.states.open(state)))));
    return token ? tokenText(token) : null;
  } catch (error) {
    mustBeDamage(error);
    return null;
  }
}

/** A state and what was found out about it. */
interface CheckedState {
  readonly state: LogState;
  readonly commit: VerifiedCommit;
  /** Nothing is wrong with it but checksums of structure. */
  readonly readable: boolean;
}

class Verification {
  readonly #stores: Stores;
  readonly #options: VerifyOptions;
  readonly #problems = new Map<string, Problem>();

  constructor(stores: Stores, options: VerifyOptions) {
    this.#stores = stores;
    this.#options = options;
  }

  async run(): Promise<{ problems: Problem[]; states: CheckedState[] }> {
    const { main, subfiles } = this.#stores;
    const states = statesOf(main);
    this.#watchChunks(states.length === 0);
    this.#note(main.troubles);
    for (const [g, store] of subfiles.entries()) {
      if (store) this.#note(named(store, store.troubles));
      else this.#note([{ what: `subfile ${g} is missing` }]);
    }
    await this.#sum(states);
    this.#note(main.damages.map(problemOfDamage));
    for (const store of subfiles) if (store) this.#note(named(store, store.damages.map(problemOfDamage)));
    const found: CheckedState[] = [];
    // The newest first: what states share is looked at in the paths that it has now.
    for (const state of [...states].reverse()) {
      this.#options.signal?.throwIfAborted();
      found.push(await this.#check(state, state === states.at(-1)));
    }
    found.reverse();
    if (states.length === 0) await this.#withoutCommits();
    return { problems: [...this.#problems.values()], states: found };
  }

  #note(problems: readonly Problem[]): void {
    for (const problem of problems) this.#problems.set(`${problem.what} ${problem.offset}`, problem);
  }

  /** Every byte of every commit. Of subfiles only what the last state counts: after a crash they may be further on. */
  async #sum(states: readonly LogState[]): Promise<void> {
    const { main, subfiles } = this.#stores;
    const last = states.at(-1);
    const parts = last ? partsOf(last, this.#stores) : [];
    const end = (store: VerifiedStore | null, g: number): number => parts[g]?.end ?? store?.file.end ?? 0;
    const all: [VerifiedStore, number, boolean][] = [[main, last?.end ?? 0, subfiles.length > 0]];
    for (const [g, store] of subfiles.entries()) if (store) all.push([store, end(store, g), false]);
    let total = 0;
    for (const [store, to] of all)
      for (const record of store.records) if (record.end <= to) total += record.end - record.start;
    let bytes = 0;
    const done = (more: number): void => {
      bytes = Math.min(total, bytes + more);
      this.#options.progress?.({ bytes, total });
    };
    for (const [store, to, isMain] of all) await store.sum(to, isMain, done, this.#options.signal);
  }

  async #check(state: LogState, isNewest: boolean): Promise<CheckedState> {
    const own = ({ sequence }: Damage): boolean => sequence === state.sequence;
    const damages = this.#stores.main.damages.filter(own).map(problemOfDamage);
    for (const store of this.#stores.subfiles)
      if (store) damages.push(...named(store, store.damages.filter(own).map(problemOfDamage)));
    const isDue = isNewest || isTouched(state, this.#stores) || !isSummed(state, this.#stores);
    const found = isDue ? await checkState(state, this.#stores, isNewest) : [];
    this.#note(found);
    const problems = [...new Set([...damages, ...found].map(({ what }) => what))];
    const time = state.record ? new Date(state.record.time) : null;
    const commit = { sequence: state.sequence, time, good: problems.length === 0, problems };
    return { state, commit, readable: found.every(({ mismatch }) => mismatch) };
  }

  /** Chunks with checksums of their own may be most of an ordinary file; a log reports the bytes of its commits. */
  #watchChunks(isOrdinary: boolean): void {
    const { objects, file } = this.#stores.main;
    const { progress, signal } = this.#options;
    let bytes = 0;
    objects.onChunk = (more) => {
      signal?.throwIfAborted();
      bytes += more;
      if (isOrdinary) progress?.({ bytes, total: file.size });
    };
  }

  /** An ordinary HDF5 file, or what is left of a file. */
  async #withoutCommits(): Promise<void> {
    const { present } = this.#stores.main.states;
    if (present) this.#note(await checkState({ ...present, sequence: 0, record: null }, this.#stores, true));
  }
}

function problemOfDamage({ start, what }: Damage): Problem {
  return { offset: start, what };
}

function named({ name }: VerifiedStore, problems: readonly Problem[]): Problem[] {
  return problems.map((problem) => ({ ...problem, what: `subfile ${name}: ${problem.what}` }));
}
