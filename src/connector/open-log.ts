import type { Structure } from '../hdf5/write/structure.ts';
import * as CONFIG from '../log/format/config-bits.ts';
import type { LogCounts } from '../log/format/log-group.ts';
import { Log, type LogOptions } from '../log/log.ts';
import type { LogStore } from '../log/store.ts';
import type { Io } from '../storage/io.ts';
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
  readonly kept: Map<number, ByteStorage>;
}

/** The log of a file whose main store is loaded. */
export class OpenLog {
  readonly log: Log;
  /** Some stores have to be looked at, or looked at again, before anything is read. */
  isBehind = false;
  readonly #isWriting: boolean;

  constructor(log: Log, { writing }: StoreOptions) {
    this.log = log;
    this.#isWriting = writing;
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

  /** Looks at what others have committed. */
  *catchUp(): Io<void> {
    const { main } = this.log;
    if (!main.committer && this.#isWriting) yield* main.reload(null);
    yield* this.look();
    this.log.committed(false);
    this.isBehind = false;
  }

  /** At the other files. */
  protected *look(): Io<void> {}
}

export function* nothing(): Io<void> {}

export const hasSubfiles = ({ config }: LogCounts): boolean => (config & CONFIG.subfiling) !== 0;
