import type { File } from '../../api/file.ts';
import { H5LogError } from '../../base/errors.ts';
import type { Log } from '../../log/log.ts';
import type { BlockIndex } from '../../log/read/index.ts';
import { sayingKind } from '../file-kind.ts';
import { drive, logDatasetOf, nameOf, reading, type Source } from '../inside.ts';
import { tablesOf } from '../log-tables.ts';
import { mustHaveLog } from '../stat/stat.ts';
import { type Origin, Origins, UNKNOWN } from '../write-origin.ts';
import { drawBlocks } from './block-picture.ts';

export interface PlotOptions {
  /** The one with most blocks unless it is said. */
  dataset?: string;
  /** What the colours mean. */
  by?: 'rank' | 'flush';
}

export interface BlockPlot {
  readonly dataset: string;
  readonly blocks: number;
  readonly svg: string;
}

/**
 * A picture of the blocks of a dataset, newer ones on top, coloured by who wrote them or when.
 *
 * @example writeFileSync('blocks.svg', (await plotBlocks('run.h5', { dataset: '/T', by: 'rank' })).svg);
 */
export function plotBlocks(source: Source, options: PlotOptions = {}): Promise<BlockPlot> {
  return sayingKind(source, () => reading(source, (file) => plot(file, options)));
}

async function plot(file: File, { dataset: wanted, by = 'rank' }: PlotOptions): Promise<BlockPlot> {
  const log = mustHaveLog(file);
  const path = wanted ?? (await largest(file, log));
  const dataset = file.dataset(path);
  const logged = logDatasetOf(dataset);
  if (!logged) throw new H5LogError('UNSUPPORTED', `${path} is not a dataset of the log`, { object: path });
  const index = await drive(file, log.tables.index(logged, null, log.tables.committed));
  const entries = await originsOf(file, log, logged.id);
  const group = new Int32Array(index.length);
  for (let i = 0; i < index.length; i++) group[i] = originOf(entries, index, i)[by];
  const title = `${nameOf(file).replace(/^.*[\\/]/, '')} ${path}`;
  return { dataset: path, blocks: index.length, svg: drawBlocks({ title, shape: dataset.shape, index, group, by }) };
}

async function largest(file: File, log: Log): Promise<string> {
  const blocks = new Map<number, number>();
  for await (const { table } of tablesOf(file, log))
    for (const { id, count } of table.entries()) blocks.set(id, (blocks.get(id) ?? 0) + count);
  let [best, most] = ['', -1];
  for (const [id, { path }] of await drive(file, log.everyDataset())) {
    const count = blocks.get(id) ?? 0;
    if (count > most) [best, most] = [path, count];
  }
  if (most < 0) throw new H5LogError('NOT_FOUND', `${nameOf(file)} has no dataset to draw`, { file: nameOf(file) });
  return best;
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
