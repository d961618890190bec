import type { AttributeValues, ProvidedEntity } from '@h5web/app';
import { type Commit, isH5LogError } from 'h5log';
import { BrowsedFile, type FileSource } from './browsed-file.ts';
import { exported, type Format } from './export.ts';
import { type LogFacts, logFacts, type SomeBlocks, someBlocks, type Verified, verified } from './log-facts.ts';

/** Earlier states that stay open. */
const KEPT = 4;
/** How often opening is tried again. */
const TRIES = 5;

/** What a page shows of a file as a whole. */
export interface FileSummary {
  readonly name: string;
  readonly connector: 'log' | 'native';
  /** The newest commit. */
  readonly sequence: number;
  readonly commits: readonly Commit[];
}

/** How a call goes on: whether somebody still wants it, and how far it is. */
export interface Going {
  readonly signal?: AbortSignal;
  readonly onProgress?: (part: number) => void;
}

/** What a worker does for a page: a file in its newest state, which can be followed, and in earlier ones. */
export class ReaderSession {
  #source: FileSource | undefined;
  #newest: BrowsedFile | undefined;
  readonly #earlier = new Map<number, Promise<BrowsedFile>>();

  async open(source: FileSource): Promise<FileSummary> {
    await this.close();
    const opened = await openedAtLast(source);
    this.#source = source;
    this.#newest = opened;
    return summary(opened);
  }

  async close(): Promise<void> {
    const earlier = [...this.#earlier.values()];
    this.#earlier.clear();
    const newest = this.#newest;
    this.#newest = undefined;
    await newest?.close();
    for (const opening of earlier) await opening.then((file) => file.close()).catch(() => undefined);
  }

  /** Moves to the newest commit; null if there is none newer. */
  async refresh(): Promise<FileSummary | null> {
    const newest = this.#open;
    return (await newest.file.refresh()) ? summary(newest) : null;
  }

  async entity(path: string, asOf?: number): Promise<ProvidedEntity> {
    return (await this.state(asOf)).entity(path);
  }

  async attributes(path: string, asOf?: number): Promise<AttributeValues> {
    return (await this.state(asOf)).attributes(path);
  }

  async value(path: string, selection: string | undefined, asOf?: number, going: Going = {}): Promise<unknown> {
    return (await this.state(asOf)).value(path, selection, going);
  }

  async paths(path: string, asOf?: number): Promise<string[]> {
    return (await this.state(asOf)).paths(path);
  }

  async exported(path: string, selection: string | undefined, format: Format, asOf?: number): Promise<Blob> {
    const { file } = await this.state(asOf);
    await file.load(path, { depth: 0 });
    return exported(file.dataset(path), selection, format);
  }

  async logFacts(asOf?: number): Promise<LogFacts> {
    return logFacts((await this.state(asOf)).file);
  }

  async blocks(dataset: string, asOf?: number): Promise<SomeBlocks> {
    return someBlocks((await this.state(asOf)).file, dataset);
  }

  /** Checks the file as it is now; the state that is shown does not count. */
  verify(going: Going = {}): Promise<Verified> {
    return verified(this.#source as FileSource, going);
  }

  get #open(): BrowsedFile {
    if (!this.#newest) throw new Error('no file is open');
    return this.#newest;
  }

  /** The newest state, or an earlier one. */
  async state(asOf: number | undefined): Promise<BrowsedFile> {
    const newest = this.#open;
    if (asOf === undefined || asOf === newest.file.sequence) return newest;
    let opening = this.#earlier.get(asOf);
    // The one that was used last is closed last.
    this.#earlier.delete(asOf);
    opening ??= BrowsedFile.open(this.#source as FileSource, { asOf });
    this.#earlier.set(asOf, opening);
    for (const [sequence, old] of this.#earlier) {
      if (this.#earlier.size <= KEPT) break;
      this.#earlier.delete(sequence);
      old.then((file) => file.close()).catch(() => undefined);
    }
    opening.catch(() => this.#earlier.delete(asOf));
    return opening;
  }
}

/** A file that is being written may change between two requests of opening it. */
async function openedAtLast(source: FileSource): Promise<BrowsedFile> {
  for (let left = TRIES; ; left--) {
    try {
      return await BrowsedFile.open(source);
    } catch (error) {
      if (left === 0 || !isH5LogError(error, 'STORAGE') || !error.message.includes('changed on the server'))
        throw error;
    }
  }
}

function summary({ file, name }: BrowsedFile): FileSummary {
  const { connector, sequence } = file;
  return { name, connector, sequence, commits: file.commits() };
}
