import { linkedFile, openSource, realFile } from '#platform';
import { H5LogError, inFile } from '../base/errors.ts';
import { solo } from '../comm/solo.ts';
import { driveSync, type Io } from '../storage/io.ts';
import type { LinkedSession } from './find.ts';
import { OneRank } from './ranks.ts';
import type { SessionOptions } from './state.ts';

/** A file and those that its links and virtual datasets name, each open once, whichever of them names it. */
export class LinkedFiles {
  /** By their real paths. */
  readonly #sessions = new Map<string, LinkedSession>();
  /** Virtual datasets whose shapes are being found, one for the other. */
  nested = 0;

  /** Every file but the first. */
  get others(): LinkedSession[] {
    return [...this.#sessions.values()].slice(1);
  }

  /** The file that `from`, a file of these, names; null if there is none. It is open for reading only. */
  open(
    from: LinkedSession,
    options: SessionOptions,
    name: string,
    start: (options: SessionOptions) => Io<LinkedSession>,
  ): LinkedSession | null {
    const { path } = options;
    refuse(options, name);
    if (path === null) return null;
    if (this.#sessions.size === 0) this.#sessions.set(realFile(path), from);
    const place = linkedFile(path, name);
    if (place === null) return null;
    const real = realFile(place);
    const known = this.#sessions.get(real);
    if (known) return known;
    const source = openSource(place, false, true);
    const own = { asOf: undefined, newSubfiles: 0, mpiIo: false, openSubfiles: new Map(), ranks: new OneRank(solo()) };
    try {
      const session = driveSync(source.storage, start({ ...options, ...source, ...own }));
      this.#sessions.set(real, session);
      return session;
    } catch (error) {
      source.storage.blocking?.close();
      throw inFile(error, place);
    }
  }
}

/** Throws if a file may not open others, or cannot. */
export function refuse({ path, external }: SessionOptions, name: string): void {
  if (!external) throw new H5LogError('UNSUPPORTED', `the file ${name}, which external: false keeps closed`);
  if (path === null)
    throw new H5LogError('UNSUPPORTED', `the file ${name}, which only a file that was opened by its path can find`);
}
