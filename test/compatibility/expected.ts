import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { State } from './model.ts';
import type { CommitFacts } from './rank.ts';

/** What is known of a fixture: `name.json` beside `name.h5`. */
export interface Expected {
  readonly about: string;
  /** Ordinary HDF5 has no log: nothing to go back to, and names as they are. */
  readonly kind: 'log' | 'ordinary';
  /** Datasets of a log file that are not in the log. */
  readonly ordinary?: readonly string[];
  /** Size of the file while it was open: zeros follow what is in the fixture. */
  readonly openSize?: number;
  /** Of the last commit. */
  readonly sequence: number;
  /** What the flushes gave. */
  readonly commits: readonly CommitFacts[];
  /** By sequence, the last one included. */
  readonly states: Readonly<Record<string, State>>;
}

export const folder = fileURLToPath(new URL('../fixtures/h5log-0.1/', import.meta.url));

/** Names of all fixtures, without their ends. */
export const names = readdirSync(folder)
  .filter((name) => name.endsWith('.h5'))
  .map((name) => name.replace(/\.h5$/, ''));

export const expectedOf = (name: string): Expected =>
  JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8')) as Expected;
