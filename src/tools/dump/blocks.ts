import type { File } from '../../api/file.ts';
import { H5LogError } from '../../base/errors.ts';
import { ANY, checkOptions } from '../../base/options.ts';
import type { Log } from '../../log/log.ts';
import type { BlockIndex } from '../../log/read/index.ts';
import { visibleElements } from '../../log/read/visible.ts';
import { boxSize } from '../../space/box.ts';
import { drive, logDatasetOf, nameOf, type Opened, reading, sayingKind } from '../inside.ts';
import { type Origin, Origins, tablesOf, UNKNOWN } from '../log-tables.ts';
import { mustHaveLog } from '../stat/stat.ts';

export interface BlocksOptions {
  /** The one with most blocks unless it is said. */
  dataset?: string;
}

/** The blocks of a dataset, in the order in which they were written: flat lists, since there may be millions. */
export interface Blocks {
  readonly dataset: string;
  readonly shape: readonly number[];
  /** How many blocks there are. */
  readonly length: number;
  /** Of each block as many numbers as the dataset has dimensions. */
  readonly starts: Float64Array;
  readonly counts: Float64Array;
  /** Who wrote each block, and with which commit; -1: nobody recorded it. */
  readonly ranks: Int32Array;
  readonly flushes: Int32Array;
  /** Bytes of the file that hold each block. */
  readonly bytes: Float64Array;
  /** Elements of each block that no newer one hides. */
  readonly visible: Float64Array;
}

/**
 * The blocks that a dataset of a log consists of, hidden ones included.
 *
 * @example const { length, ranks } = await blocks('run.h5', { dataset: '/T' });
 */
export async function blocks(source: Opened, options: BlocksOptions = {}): Promise<Blocks> {
  checkOptions('blocks', options, { dataset: ANY });
  return sayingKind(source, () => reading(source, (file) => blocksOf(file, options)));
}

async function blocksOf(file: File, { dataset: wanted }: BlocksOptions): Promise<Blocks> {
  const log = mustHaveLog(file);
  const path = wanted ?? (await largest(file, log));
  const { index, ranks, flushes, elementSize } = await writtenBlocks(file, log, path);
  const { length, rank, stored } = index;
  const { shape } = file.dataset(path);
  const bytes = new Float64Array(length);
  for (let i = 0; i < length; i++) bytes[i] = stored?.[i] || boxSize(index.counts, i * rank, rank) * elementSize;
  return {
    dataset: path,
    shape,
    length,
    starts: index.starts.slice(0, length * rank),
    counts: index.counts.slice(0, length * rank),
    ranks,
    flushes,
    bytes,
    visible: visibleElements(index, shape),
  };
}

/** The path of the dataset with most blocks. */
export async function largest(file: File, log: Log): Promise<string> {
  const counts = new Map<number, number>();
  for await (const { table } of tablesOf(file, log))
    for (const { id, count } of table.entries()) counts.set(id, (counts.get(id) ?? 0) + count);
  let [best, most] = ['', -1];
  for (const [id, { path }] of await drive(file, log.everyDataset())) {
    const count = counts.get(id) ?? 0;
    if (count > most) [best, most] = [path, count];
  }
  if (most < 0) throw new H5LogError('NOT_FOUND', `${nameOf(file)} has no dataset with blocks`, { file: nameOf(file) });
  return best;
}

/** The blocks of a dataset, with who wrote each and when. */
export async function writtenBlocks(
  file: File,
  log: Log,
  path: string,
): Promise<{ index: BlockIndex; ranks: Int32Array; flushes: Int32Array; elementSize: number }> {
  const logged = logDatasetOf(file.dataset(path));
  if (!logged) throw new H5LogError('UNSUPPORTED', `${path} is not a dataset of the log`, { object: path });
  const index = await drive(file, log.tables.index(logged, null, log.tables.committed));
  const entries = await originsOf(file, log, logged.id);
  const [ranks, flushes] = [new Int32Array(index.length), new Int32Array(index.length)];
  for (let i = 0; i < index.length; i++) {
    const { rank, flush } = originOf(entries, index, i);
    ranks[i] = rank;
    flushes[i] = flush;
  }
  return { index, ranks, flushes, elementSize: logged.elements.size };
}

interface Entries {
  readonly offsets: number[];
  readonly origins: Origin[];
}

/** By store, where entries of a dataset have their data and who wrote it, in ascending file offset. */
async function originsOf(file: File, log: Log, wanted: number): Promise<readonly Entries[]> {
  const origins = new Origins(log);
  const found = log.stores.map((): [number, Origin][] => []);
  for await (const read of tablesOf(file, log)) {
    origins.meet(read);
    for (const { id, offset, section } of read.table.entries())
      if (id === wanted) found[read.store.index]?.push([offset, origins.of(read, offset, section)]);
  }
  return found.map((list) => {
    list.sort(([a], [b]) => a - b);
    return { offsets: list.map(([offset]) => offset), origins: list.map(([, origin]) => origin) };
  });
}

function originOf(entries: readonly Entries[], index: BlockIndex, i: number): Origin {
  const { offsets, origins } = entries[index.stores?.[i] ?? 0] as Entries;
  const at = index.offsets[i] as number;
  let [low, high] = [0, offsets.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((offsets[middle] as number) <= at) low = middle + 1;
    else high = middle;
  }
  return origins[low - 1] ?? UNKNOWN;
}
