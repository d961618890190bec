import type { Dataset, File } from 'h5log';
import { blobStorage, httpStorage } from 'h5log/storage';
import type { Blocks, FlushStat, Stat, VerifyResult } from 'h5log/tools';
// One by one: other tools of h5log/tools start threads, which a page does not have.
import { blocks } from '../../../../src/tools/dump/blocks.ts';
import { stat } from '../../../../src/tools/stat/stat.ts';
import { verify } from '../../../../src/tools/verify/verify.ts';
import type { FileSource } from './browsed-file.ts';

/** The most blocks that are sent to the page. Of more, every n-th is. */
export const MOST_BLOCKS = 100_000;

/** A dataset of a log, for the list of them. */
export interface DatasetFacts {
  readonly path: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  /** In the log; of an ordinary dataset there are none. */
  readonly blocks: number;
  readonly bytes: number;
  readonly dead: number;
  readonly isLogged: boolean;
  /** What other HDF5 programs see. */
  readonly seen: string;
}

/** What the log tab shows of a file in one state. */
export interface LogFacts {
  /** Bytes of the file. */
  readonly size: number;
  readonly live: number;
  readonly dead: number;
  readonly structure: number;
  readonly flushes: readonly FlushStat[];
  readonly ranks: number;
  readonly datasets: readonly DatasetFacts[];
}

export async function logFacts(file: File): Promise<LogFacts> {
  const { size, data, structure, flushes, ranks, datasets, ordinary } = await stat(file);
  return {
    size,
    live: data.live,
    dead: data.dead,
    structure,
    flushes,
    ranks: ranks.length,
    datasets: [...datasets.map((found) => logged(file, found)), ...ordinary.map(notLogged)].sort((a, b) =>
      a.path < b.path ? -1 : 1,
    ),
  };
}

function logged(
  file: File,
  { path, dtype, shape, blocks: count, bytes, dead }: Stat['datasets'][number],
): DatasetFacts {
  return { path, dtype, shape, blocks: count, bytes, dead, isLogged: true, seen: seenBy(file, path) };
}

function notLogged({ path, dtype, shape, layout, bytes }: Stat['ordinary'][number]): DatasetFacts {
  const seen = `all: an ordinary dataset (${layout})`;
  return { path, dtype, shape: shape ?? [], blocks: 0, bytes, dead: 0, isLogged: false, seen };
}

/** Which state of a dataset of the log other programs see, and why not the newest. */
function seenBy(file: File, path: string): string {
  const { published } = file.dataset(path) as Dataset & {
    readonly published?: { readonly sequence: number; readonly way: string } | null;
  };
  if (!published) return 'nothing: it was never published; h5log seal or replay makes it ordinary';
  if (published.sequence >= file.sequence) return `all (${published.way})`;
  return `commit ${published.sequence} (${published.way}): what was written since has not been published`;
}

/** Blocks of a dataset, perhaps not all of them. */
export interface SomeBlocks extends Blocks {
  /** How many there are in all; `length` of them are here, every `step`-th. */
  readonly total: number;
  readonly step: number;
}

export async function someBlocks(file: File, dataset: string): Promise<SomeBlocks> {
  return thinned(await blocks(file, { dataset }), MOST_BLOCKS);
}

/** Every n-th block, so that there are at most so many. The newest is among them. */
export function thinned(all: Blocks, most: number): SomeBlocks {
  const { length: total, shape, starts, counts, ranks, flushes, bytes, visible } = all;
  const step = Math.max(1, Math.ceil(total / most));
  if (step === 1) return { ...all, total, step };
  const length = Math.ceil(total / step);
  const first = total - 1 - (length - 1) * step;
  const each = <A extends Float64Array | Int32Array>(list: A, width = 1): A => {
    const some = list.slice(0, length * width) as A;
    for (let i = 0; i < length; i++)
      for (let d = 0; d < width; d++) some[i * width + d] = list[(first + i * step) * width + d] as number;
    return some;
  };
  return {
    ...all,
    length,
    total,
    step,
    starts: each(starts, shape.length),
    counts: each(counts, shape.length),
    ranks: each(ranks),
    flushes: each(flushes),
    bytes: each(bytes),
    visible: each(visible),
  };
}

/** What was checked, and what is wrong. */
export type Verified = Pick<VerifyResult, 'sound' | 'checksums' | 'problems' | 'newestSound' | 'bytes'> & {
  readonly commits: number;
};

/** Looks at every committed byte of the file as it is now. */
export async function verified(
  source: FileSource,
  going: { signal?: AbortSignal; onProgress?: (part: number) => void },
): Promise<Verified> {
  const { signal, onProgress } = going;
  const storage = 'url' in source ? httpStorage(source.url) : blobStorage(source.blob);
  try {
    const { sound, checksums, problems, newestSound, bytes, commits } = await verify(storage, {
      ...(signal && { signal }),
      progress: ({ bytes: done, total }) => onProgress?.(total > 0 ? done / total : 0),
    });
    return { sound, checksums, problems: problems.slice(0, 100), newestSound, bytes, commits: commits.length };
  } finally {
    await storage.close();
  }
}
