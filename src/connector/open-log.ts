import { formatError } from '../base/errors.ts';
import type { Communicator } from '../comm/communicator.ts';
import { solo } from '../comm/solo.ts';
import type { Structure } from '../hdf5/write/structure.ts';
import { type SubfileState, subfileState } from '../log/format/commit-record.ts';
import { CONFIG, type LogCounts, readToken, type Token } from '../log/format/log-group.ts';
import { Log, type LogOptions } from '../log/log.ts';
import { LogStore } from '../log/store.ts';
import {
  agreedToken,
  createSubfile,
  findSubfile,
  groupingOf,
  loadSubfile,
  MOST_SUBFILES,
  newGrouping,
  openSubfile,
  type SubfileOpening,
  tokenText,
} from '../log/subfiles.ts';
import { type Io, nothing } from '../storage/io.ts';
import type { ByteStorage, Subfiles } from '../storage/storage.ts';
import type { Ranks } from './ranks.ts';

/** What the stores of a log are opened with. */
export interface StoreOptions {
  readonly ranks: Ranks;
  readonly writing: boolean;
  readonly power: boolean;
  readonly log: LogOptions;
  readonly subfiles: Subfiles | null;
  /** Subfiles that are open, by number. */
  readonly openSubfiles: Map<number, ByteStorage>;
}

/** The log of a file whose main store is loaded. */
export class OpenLog {
  readonly log: Log;
  /** Some stores have to be looked at, or looked at again, before anything is read. */
  isBehind: boolean;
  readonly #isWriting: boolean;

  constructor(log: Log, { writing }: Pick<StoreOptions, 'writing'>, isBehind = false) {
    this.log = log;
    this.#isWriting = writing;
    this.isBehind = isBehind;
  }

  /** A log in the file itself. */
  static plain(structure: Structure, main: LogStore, options: StoreOptions): OpenLog {
    return new OpenLog(new Log(structure, main, [main], 0, options.log), options);
  }

  /** Nothing is beside a Blob: the structure of its log can be looked at, the data in subfiles cannot. */
  static unreachable(structure: Structure, main: LogStore, options: StoreOptions): OpenLog {
    return new OpenLog(new Log(structure, main, [], 0, options.log), options);
  }

  /** For ranks that write data into a file which another has made. */
  *join(): Io<void> {}

  /** This log as its last commit left it, because the ranks made calls that differ since then. */
  restored(structure: Structure, main: LogStore): OpenLog {
    return new OpenLog(this.again(structure, main, [main]), { writing: this.#isWriting }, true);
  }

  protected again(structure: Structure, main: LogStore, stores: readonly LogStore[]): Log {
    const { own, options, states } = this.log;
    const log = new Log(structure, main, stores, own.index, options);
    log.states = states;
    return log;
  }

  /** Looks at what others have committed. */
  *catchUp(): Io<void> {
    const { main } = this.log;
    if (!main.committer && this.#isWriting) yield* main.reload(null);
    yield* this.look();
    this.log.committed(false);
    this.isBehind = false;
  }

  /** Reads the state of the subfiles; one file has none. */
  protected *look(): Io<void> {}
}

export const hasSubfiles = ({ config }: LogCounts): boolean => (config & CONFIG.subfiling) !== 0;

type SubfileOptions = StoreOptions & { readonly subfiles: Subfiles };

/** Subfiles that were made for a new file, not under their names yet. */
export class NewSubfiles {
  readonly token: Token;
  readonly stores: readonly LogStore[];
  readonly own: LogStore;
  readonly states: readonly SubfileState[];
  readonly #options: SubfileOptions;

  private constructor(
    options: SubfileOptions,
    token: Token,
    stores: readonly LogStore[],
    own: LogStore,
    states: readonly SubfileState[],
  ) {
    this.#options = options;
    this.token = token;
    this.stores = stores;
    this.own = own;
    this.states = states;
  }

  /** Collective: the first rank of each group makes the subfile of the group. */
  static *create(options: SubfileOptions, wanted: number | 'node'): Io<NewSubfiles> {
    const { ranks, power, subfiles } = options;
    const { comm } = ranks;
    const { count, mine } = newGrouping(comm, wanted);
    const token = agreedToken(comm);
    const stores = storesOf(count, mine, comm.split(mine));
    const own = stores[mine] as LogStore;
    const leads = own.comm.rank === 0;
    try {
      yield* ranks.collectiveIo(leads ? createSubfile(own, subfiles, token, count, power) : nothing(undefined));
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
    return new NewSubfiles(options, token, stores, own, states);
  }

  get count(): number {
    return this.stores.length;
  }

  /** The log of the new file. */
  open(structure: Structure, main: LogStore): SubfiledLog {
    const log = new Log(structure, main, this.stores, this.own.index, this.#options.log);
    log.states = this.states;
    return new SubfiledLog(log, this.#options, this.token);
  }

  /** On the rank that made it. */
  publish(durable: boolean): void {
    if (this.own.committer) this.#options.subfiles.publish(this.own.index, tokenText(this.token), durable);
  }

  discard(): void {
    this.own.comm.close();
    if (!this.own.committer) return;
    this.own.storage?.blocking?.close();
    this.#options.subfiles.discard(this.own.index, tokenText(this.token));
  }
}

/** The subfiles of a new file. */
export function createSubfiles(options: SubfileOptions, wanted: number | 'node'): Io<NewSubfiles> {
  return NewSubfiles.create(options, wanted);
}

function storesOf(count: number, mine: number, group: Communicator, known: readonly LogStore[] = []): LogStore[] {
  return Array.from({ length: count }, (_, g) => new LogStore(g, g === mine ? group : solo(), known[g]));
}

/** What there is in a file and its subfiles. `known` are the stores of an earlier state. */
export function* openSubfiled(
  structure: Structure,
  main: LogStore,
  group: Communicator | null,
  options: SubfileOptions,
  known?: readonly LogStore[],
): Io<SubfiledLog> {
  const { ranks, writing } = options;
  const { subfiles: count } = main.counts;
  if (count < 1 || count > MOST_SUBFILES) throw formatError(`log in ${count} subfiles`, main.root);
  const token = yield* readToken(structure);
  const { mine } = groupingOf(ranks.comm, count);
  const stores = storesOf(count, mine, group ?? solo(), known);
  const log = new Log(structure, main, stores, mine, options.log);
  const states = (main.commit()?.ranks ?? []).map(subfileState);
  log.states = states;
  const open = new SubfiledLog(log, options, token);
  if (writing) yield* open.openOwn();
  // One look at all of them, so that a missing one is noticed now.
  if (ranks.leads) {
    yield* open.catchUp();
    // Where no record says which states count, the present ones do: the next record has to name them all.
    if (states.length === 0) log.states = stores.map(({ root, end }) => ({ root, end }));
  }
  return open;
}

/** A log in subfiles, which are opened as far as this rank needs them. */
class SubfiledLog extends OpenLog {
  readonly #options: SubfileOptions;
  readonly #token: Token | null;

  constructor(log: Log, options: SubfileOptions, token: Token | null) {
    super(log, options, true);
    this.#options = options;
    this.#token = token;
  }

  *openOwn(): Io<void> {
    const { own } = this.log;
    const opening = this.#opening(own.index);
    if (own.comm.rank === 0) yield* openSubfile(own, opening, this.#options.power);
    else own.storage = yield* findSubfile(own.index, opening, true);
  }

  override restored(structure: Structure, main: LogStore): OpenLog {
    return new SubfiledLog(this.again(structure, main, this.log.stores), this.#options, this.#token);
  }

  #opening(g: number): SubfileOpening {
    const { main, stores, states } = this.log;
    const { openSubfiles, subfiles } = this.#options;
    return { subfiles, token: this.#token, count: stores.length, state: states[g], main, openSubfiles };
  }

  /** For ranks that write data into a subfile which another has made. */
  override *join(): Io<void> {
    const { own } = this.log;
    if (!own.committer) own.storage = yield* findSubfile(own.index, this.#opening(own.index), true);
  }

  protected override *look(): Io<void> {
    const { stores, states } = this.log;
    for (const store of stores) {
      const isCurrent = store.isOpen && store.root === states[store.index]?.root;
      if (!store.committer && !isCurrent) yield* loadSubfile(store, this.#opening(store.index));
    }
  }
}
