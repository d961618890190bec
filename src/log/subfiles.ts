import { hostName } from '#platform';
import { addContext, formatError, H5LogError } from '../base/errors.ts';
import type { Communicator } from '../comm/communicator.ts';
import { SUPERBLOCK_SIZE } from '../hdf5/format/superblock.ts';
import { openStructure } from '../hdf5/open.ts';
import { newStructure, prepareWriting } from '../hdf5/prepare-writing.ts';
import { Appender } from '../hdf5/write/appender.ts';
import { Committer } from '../hdf5/write/commit.ts';
import { type Io, onStorage } from '../storage/io.ts';
import type { ByteStorage, Subfiles } from '../storage/storage.ts';
import type { SubfileState } from './format/commit-record.ts';
import { type LogCounts, readCounts, readToken, TOKEN_SIZE, type Token } from './format/log-group.ts';
import { beginLog, newToken } from './format/log-group-write.ts';
import type { LogStore } from './store.ts';

export const tokenText = (token: Token): string =>
  [...token].map((byte) => byte.toString(16).padStart(2, '0')).join('');

/** A token that all ranks agree on. */
export function agreedToken(comm: Communicator): Token {
  return comm.bcast(comm.rank === 0 ? newToken() : null, 0);
}

/** What a subfile keeps of it: the token of the file, then its own number. */
function tokenOfSubfile(token: Token, g: number): Token {
  const own = new Uint8Array(TOKEN_SIZE + 4);
  own.set(token);
  new DataView(own.buffer).setUint32(TOKEN_SIZE, g, true);
  return own;
}

/** More subfiles than any file has: a number that is damaged. */
export const MOST_SUBFILES = 2 ** 16;

/** How many subfiles there are, and which of them is this rank's. */
interface Grouping {
  readonly count: number;
  readonly mine: number;
}

/** Rank r of P writes to subfile floor(r n / P); there are never more subfiles than ranks. 'node': one a machine. */
export function newGrouping(comm: Communicator, wanted: number | 'node'): Grouping {
  if (wanted !== 'node') return groupingOf(comm, Math.min(wanted, comm.size));
  const text = new TextDecoder();
  const hosts = comm.allgather(new TextEncoder().encode(hostName())).map((bytes) => text.decode(bytes));
  const all = [...new Set(hosts)];
  return { count: all.length, mine: all.indexOf(hosts[comm.rank] as string) };
}

/** The same for a file that has so many. */
export function groupingOf({ rank, size }: Communicator, count: number): Grouping {
  return { count, mine: Math.floor((rank * count) / size) };
}

/** Makes an empty subfile under its temporary name. */
export function* createSubfile(
  store: LogStore,
  subfiles: Subfiles,
  token: Token,
  count: number,
  power: boolean,
): Io<void> {
  const storage = subfiles.create(store.index, tokenText(token));
  const structure = newStructure();
  const counts: LogCounts = { datasets: 0, logs: 0, tables: 0, config: 0, subfiles: count };
  const superblock = { base: 0, end: SUPERBLOCK_SIZE, bytes: new Uint8Array(0) };
  const committer = new Committer(structure, new Appender({ name: storage.name, superblock, power }), null);
  store.storage = storage;
  yield* store.run(begin());
  store.attach({ storage, structure, counts });
  store.committer = committer;

  function* begin(): Io<void> {
    beginLog(structure, counts, tokenOfSubfile(token, store.index));
    yield* committer.write(committer.plan());
  }
}

export interface SubfileOpening {
  readonly subfiles: Subfiles;
  /** Subfiles that are open, by number. */
  readonly openSubfiles: Map<number, ByteStorage>;
  /** The file itself, which knows its commits. */
  readonly main: LogStore;
  readonly token: Token | null;
  readonly count: number;
  /** The state that counts; undefined: the present one. */
  readonly state: SubfileState | undefined;
}

/** Opens a subfile for reading, or looks at it again. */
export function* loadSubfile(store: LogStore, opening: SubfileOpening): Io<void> {
  const known = store.storage;
  const storage = known ?? (yield* findSubfile(store.index, opening, false));
  yield* named(opening.subfiles.name(store.index), reload());

  function* reload(): Io<void> {
    yield* store.reload(storage, opening.state);
    mustBeOfThese(store, opening);
  }
}

/**
 * Of a copy of the file that was written on by itself, a subfile has the right token and may even have the right size; but its
 * last commit is none that the file made.
 */
function mustBeOfThese(store: LogStore, { main }: SubfileOpening): void {
  const last = store.commit();
  if (!last || main.commit(last.sequence)?.time === last.time) return;
  throw formatError(`its commit ${last.sequence} of ${new Date(last.time).toISOString()} is none of this file`);
}

/** Opens a subfile for writing its structure. What a crash left behind the state that counts stays unused. */
export function* openSubfile(store: LogStore, opening: SubfileOpening, power: boolean): Io<void> {
  const storage = yield* findSubfile(store.index, opening, true, true);
  store.storage = storage;
  yield* named(opening.subfiles.name(store.index), store.run(open()));

  function* open(): Io<void> {
    const opened = yield* openStructure(opening.state?.root);
    yield* prepareWriting(opened, storage);
    const { structure, superblock, extension } = opened;
    const counts = yield* readCounts(structure);
    if (!counts) throw formatError('the counts of the log are missing');
    store.committer = new Committer(structure, new Appender({ name: storage.name, superblock, power }), extension);
    store.attach({ storage, structure, counts });
    if (opening.state) store.end = opening.state.end;
    yield* store.load();
    mustBeOfThese(store, opening);
    yield* store.committer.appender.begin();
  }
}

/**
 * The subfile of that file: under its name, or, if its maker was stopped in between, under the temporary one. Of the ranks that
 * write it one gives it its name.
 */
export function* findSubfile(g: number, opening: SubfileOpening, writing: boolean, names = false): Io<ByteStorage> {
  const { subfiles, token, openSubfiles } = opening;
  const known = openSubfiles.get(g);
  if (known) return known;
  let reason: string | null = null;
  // Its maker, or another rank, may give it its name between the first two looks: then it is there at the third.
  for (const unnamed of token ? [false, true, false] : [false]) {
    const found = subfiles.open(g, writing, unnamed && token ? tokenText(token) : undefined);
    const problem = found ? yield* whyForeign(found, g, opening) : 'is missing';
    if (found && problem === null) {
      if (names && unnamed && token) subfiles.publish(g, tokenText(token), false);
      return keep(found);
    }
    found?.blocking?.close();
    if (!unnamed) reason = problem;
  }
  throw new H5LogError('FORMAT', `subfile ${subfiles.name(g)} ${reason}`, { file: subfiles.name(g) });

  function keep(storage: ByteStorage): ByteStorage {
    openSubfiles.set(g, storage);
    return storage;
  }
}

function* whyForeign(storage: ByteStorage, g: number, { token, count }: SubfileOpening): Io<string | null> {
  let theirs: Token | null;
  let counts: LogCounts | undefined;
  try {
    const { structure } = yield* onStorage(storage, openStructure());
    theirs = yield* onStorage(storage, readToken(structure));
    counts = yield* onStorage(storage, readCounts(structure));
  } catch (error) {
    return `cannot be read: ${(error as Error).message}`;
  }
  if (!counts) return 'holds no log';
  if (counts.subfiles !== count) return `belongs to a file of ${counts.subfiles} subfiles, not ${count}`;
  if (!token) return theirs === null ? null : 'belongs to another file';
  if (!theirs || token.some((byte, i) => byte !== theirs[i])) return 'belongs to another file';
  const own = tokenOfSubfile(token, g);
  return own.every((byte, i) => byte === theirs[i]) ? null : 'is another subfile of this file';
}

function* named<T>(name: string, io: Io<T>): Io<T> {
  try {
    return yield* io;
  } catch (error) {
    throw addContext(error, `subfile ${name}: `, { file: name }, 'file');
  }
}
