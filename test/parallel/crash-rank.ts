import { cpSync, existsSync, mkdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Communicator } from '../../src/comm/communicator.ts';
import { type CreateOptions, File } from '../../src/index.ts';

export const LENGTH = 12;

/** Copies a file and its subfiles as they are now, open or not. */
export function copyTo(path: string, folder: string): void {
  mkdirSync(folder, { recursive: true });
  cpSync(path, join(folder, basename(path)));
  if (existsSync(`${path}.subfiles`))
    cpSync(`${path}.subfiles`, join(folder, `${basename(path)}.subfiles`), { recursive: true });
}

export interface Making {
  readonly path: string;
  readonly subfiles: number;
  readonly create?: Pick<CreateOptions, 'logs' | 'table'>;
  readonly flushes: number;
  /** Copies go into folders in it, by sequence. */
  readonly copies: string;
}

/** Flushes that everybody takes part in, and one in which only the last group has data. Gives the states by sequence. */
function make(comm: Communicator, { path, subfiles, create, flushes, copies }: Making): number[][] {
  const file = File.createSync(path, { comm, subfiles, ...create });
  const t = file.createDataset('/t', { dtype: 'int32', shape: [LENGTH] });
  const states: number[][] = [new Array<number>(LENGTH).fill(0)];
  const keep = (): void => {
    comm.barrier();
    if (comm.rank === 0) copyTo(path, join(copies, String(file.sequence)));
    comm.barrier();
  };
  const model = new Array<number>(LENGTH).fill(0);
  keep();
  file.flushSync();
  states[file.sequence] = [...model];
  keep();
  for (let k = 1; k <= flushes; k++) {
    for (let rank = 0; rank < comm.size; rank++) {
      if (k === 2 && rank < comm.size - 1) continue;
      // Neighbours overlap: the order of writing between subfiles matters.
      const start = rank * 2;
      model.fill(k * 100 + rank, start, start + 5);
      if (rank === comm.rank) t.write(new Int32Array(5).fill(k * 100 + rank), { start: [start], count: [5] });
    }
    file.attributes.set('k', k);
    file.flushSync();
    states[file.sequence] = [...model];
    keep();
  }
  file.closeSync();
  return states;
}

export interface Appending {
  readonly path: string;
  /** What the file must hold before. */
  readonly before: readonly number[];
}

/** Appends to each file, with all ranks, and reads it back; twice, because what a crash left must not come back either. */
function append(comm: Communicator, files: readonly Appending[]): string[] {
  const wrong: string[] = [];
  for (const { path, before } of files) {
    const model = [...before];
    const check = (when: string, seen: ArrayLike<unknown>): void => {
      if (String(Array.from(seen)) !== String(model)) wrong.push(`${path} ${when}: ${Array.from(seen)} not ${model}`);
    };
    for (let round = 1; round <= 2; round++) {
      const file = File.openSync(path, { comm, mode: 'r+' });
      const t = file.dataset('/t');
      check(`opened ${round}`, t.readSync() as Int32Array);
      for (let rank = 0; rank < comm.size; rank++) {
        const start = (rank * 3 + round) % (LENGTH - 4);
        model.fill(9000 + round * 100 + rank, start, start + 4);
        if (rank === comm.rank)
          t.write(new Int32Array(4).fill(9000 + round * 100 + rank), { start: [start], count: [4] });
      }
      file.flushSync();
      check(`flushed ${round}`, t.readSync() as Int32Array);
      file.closeSync();
      check(`closed ${round}`, t.readSync() as Int32Array);
    }
    const reader = File.openSync(path, { comm });
    check('read', reader.dataset('/t').readSync() as Int32Array);
    reader.closeSync();
  }
  return wrong;
}

/** Creates over what is there, copying at each step of the publishing by a hook in node:fs. */
function replace(comm: Communicator, { path, subfiles, copies }: Making): void {
  const file = File.createSync(path, { comm, subfiles });
  const t = file.createDataset('/t', { dtype: 'int32', shape: [LENGTH] });
  t.write(new Int32Array(2).fill(70 + comm.rank), { start: [comm.rank * 2], count: [2] });
  file.flushSync();
  comm.barrier();
  if (comm.rank === 0) copyTo(path, copies);
  file.closeSync();
}

export default (comm: Communicator, data: { work: string; making?: Making; files?: Appending[] }): unknown => {
  if (data.work === 'make') return make(comm, data.making as Making);
  if (data.work === 'replace') return replace(comm, data.making as Making);
  return append(comm, data.files ?? []);
};
