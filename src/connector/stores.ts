import type { Communicator } from '../comm/communicator.ts';
import { solo } from '../comm/solo.ts';
import type { Structure } from '../hdf5/structure.ts';
import { type SubfileState, subfileState } from '../log/commit-record.ts';
import { CONFIG, type LogCounts } from '../log/layout.ts';
import { Log, type LogOptions } from '../log/log.ts';
import { LogStore } from '../log/store.ts';
import type { Io } from '../storage/drive.ts';
import type { ByteStorage } from '../storage/storage.ts';
import type { Subfiles } from '../storage/subfiles.ts';
import { jointly } from './collective.ts';
import {
  createSubfile,
  findSubfile,
  groupingOf,
  loadSubfile,
  newGrouping,
  newToken,
  openSubfile,
  readToken,
  type Token,
  tokenText,
} from './subfiles.ts';

/** What the stores of a log are opened with. */
export interface StoreOptions {
  readonly comm: Communicator;
  readonly writing: boolean;
  readonly power: boolean;
  readonly log: LogOptions;
  readonly subfiles: Subfiles | null;
  /** Subfiles that are open, by number. */
  readonly kept: Map<number, ByteStorage>;
}

/** Subfiles that were made for a new file, not under their names yet. */
export class NewSubfiles {
  readonly token: Token;
  readonly stores: readonly LogStore[];
  readonly own: LogStore;
  readonly states: readonly SubfileState[];
  readonly #subfiles: Subfiles;

  private constructor(
    subfiles: Subfiles,
    token: Token,
    stores: readonly LogStore[],
    own: LogStore,
    states: readonly SubfileState[],
  ) {
    this.#subfiles = subfiles;
    this.token = token;
    this.stores = stores;
    this.own = own;
    this.states = states;
  }

  /** Collective: the first rank of each group makes the subfile of the group. */
  static *create(options: StoreOptions, subfiles: Subfiles, wanted: number | 'node'): Io<NewSubfiles> {
    const { comm, power } = options;
    const { count, mine } = newGrouping(comm, wanted);
    const token = newToken(comm);
    const stores = storesOf(count, mine, comm.split(mine));
    const own = stores[mine] as LogStore;
    const leads = own.comm.rank === 0;
    try {
      yield* jointly(comm, leads ? createSubfile(own, subfiles, token, count, power) : nothing());
    } catch (error) {
      own.comm.close();
      own.storage?.blocking?.close();
      if (leads) subfiles.discard(mine, tokenText(token));
      throw error;
    }
    const told = comm.allgather(new Uint8Array(Float64Array.of(leads ? mine : -1, own.root, own.end).buffer));
    const states: SubfileState[] = [];
    for (const bytes of told) {
      const [g, root, end] = new Float64Array(bytes.slice().buffer) as unknown as [number, number, number];
      if (g >= 0) states[g] = { root, end };
    }
    return new NewSubfiles(subfiles, token, stores, own, states);
  }

  /** On the rank that made it. */
  publish(durable: boolean): void {
    if (this.own.committer) this.#subfiles.publish(this.own.place, tokenText(this.token), durable);
  }

  discard(): void {
    this.own.comm.close();
    if (!this.own.committer) return;
    this.own.storage?.blocking?.close();
    this.#subfiles.discard(this.own.place, tokenText(this.token));
  }
}

export function* nothing(): Io<void> {}

function storesOf(count: number, mine: number, group: Communicator): LogStore[] {
  return Array.from({ length: count }, (_, g) => new LogStore(g, g === mine ? group : solo()));
}

/** The log of a file whose main store is loaded: with one store, or with its subfiles, which are opened as far as this rank needs them now. */
export class OpenLog {
  readonly log: Log;
  /** Some stores have to be looked at, or looked at again, before anything is read. */
  isBehind = false;
  readonly #options: StoreOptions;
  readonly #token: Token | null;

  private constructor(log: Log, options: StoreOptions, token: Token | null) {
    this.log = log;
    this.#options = options;
    this.#token = token;
  }

  /** A log in the file itself. */
  static plain(structure: Structure, main: LogStore, options: StoreOptions): OpenLog {
    return new OpenLog(new Log(structure, main, [main], 0, options.log), options, null);
  }

  /** A new file with subfiles. */
  static made(structure: Structure, main: LogStore, made: NewSubfiles, options: StoreOptions): OpenLog {
    const log = new Log(structure, main, made.stores, made.own.place, options.log);
    log.states = made.states;
    const open = new OpenLog(log, options, made.token);
    open.isBehind = true;
    return open;
  }

  /** What there is. */
  static *open(structure: Structure, main: LogStore, group: Communicator | null, options: StoreOptions): Io<OpenLog> {
    const { comm, subfiles, writing } = options;
    const { counts } = main;
    if (!hasSubfiles(counts)) return OpenLog.plain(structure, main, options);
    const token = yield* readToken(structure);
    const { mine } = groupingOf(comm, counts.subfiles);
    // A Blob has nothing beside it: its structure can be looked at, its data cannot.
    const stores = subfiles ? storesOf(counts.subfiles, mine, group ?? solo()) : [];
    const log = new Log(structure, main, stores, mine, options.log);
    const parts = main.commit()?.ranks ?? [];
    log.states = parts.map(subfileState);
    const open = new OpenLog(log, options, token);
    if (writing && subfiles) yield* open.#openOwn();
    open.isBehind = true;
    // One look at all of them, so that a missing one is noticed now.
    if (comm.rank === 0) {
      yield* open.catchUp();
      // Where no record says which states count, the present ones do: the next record has to name them all.
      if (subfiles && parts.length === 0) log.states = stores.map(({ root, end }) => ({ root, end }));
    }
    return open;
  }

  *#openOwn(): Io<void> {
    const { own } = this.log;
    const opening = this.#opening(own.place);
    if (own.comm.rank === 0) yield* openSubfile(own, opening, this.#options.power);
    else own.storage = yield* findSubfile(own.place, opening, true);
  }

  #opening(g: number): Parameters<typeof loadSubfile>[1] {
    const { log } = this;
    const { kept } = this.#options;
    const subfiles = this.#options.subfiles as Subfiles;
    const { main, stores, states } = log;
    return { subfiles, token: this.#token, count: stores.length, state: states[g], main, kept };
  }

  /** For ranks that write data into a subfile which another has made. */
  *join(): Io<void> {
    const { own } = this.log;
    if (!own.committer) own.storage = yield* findSubfile(own.place, this.#opening(own.place), true);
  }

  /** Looks at what others have committed. */
  *catchUp(): Io<void> {
    const { log } = this;
    if (!log.main.committer && this.#options.writing) yield* log.main.reload(null);
    if (log.hasSubfiles) {
      for (const store of log.stores) {
        const isCurrent = store.isOpen && store.root === log.states[store.place]?.root;
        if (!store.committer && !isCurrent) yield* loadSubfile(store, this.#opening(store.place));
      }
    }
    log.committed(false);
    this.isBehind = false;
  }
}

export const hasSubfiles = ({ config }: LogCounts): boolean => (config & CONFIG.subfiling) !== 0;

/** The ranks that write into the same subfile as this one. */
export function groupOf(comm: Communicator, { subfiles }: LogCounts): Communicator {
  return comm.size === 1 ? solo() : comm.split(groupingOf(comm, subfiles).mine);
}
