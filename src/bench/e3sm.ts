import { H5LogError } from '../base/errors.ts';
import type { Communicator } from '../comm/communicator.ts';
import { runThreads } from '../threads.ts';
import { parseCdl } from './cdl.ts';
import { type Decomposition, readMap } from './decomposition.ts';
import { generateHeader, generateMap } from './e3sm-generate.ts';
import { type PlanOptions, planFiles } from './e3sm-plan.ts';
import e3smRank, { type E3smReport, type E3smTask } from './e3sm-rank.ts';

export type { E3smFile, E3smReport, E3smTimes } from './e3sm-rank.ts';

import { rankModule } from '../tools/rank-module.ts';

export interface E3smOptions extends Partial<PlanOptions> {
  /** CDL texts, a file each. Without: one that is made up. */
  headers?: readonly string[];
  /** Path of the map, or what it says. Without: one that is made up. */
  map?: string | readonly Decomposition[];
  /** Ranks that call this together; without it threads are started. */
  comm?: Communicator;
  /** How many threads; 1 unless it is said. */
  ranks?: number;
  /** How often to write everything; the first time is the cold one. */
  repeat?: number;
  /** Read everything back each time and check it. */
  read?: boolean;
  /** false: lend the buffers instead of having them copied. */
  copy?: boolean;
  /** Whether metadata tables are compressed; as always if it is not said. */
  compress?: boolean;
}

/**
 * Writes what the E3SM climate model writes: files of hundreds of variables, most of them cut into very many short runs. `paths` are the files to
 * write, one for each header.
 *
 * @example const { times } = await e3sm(['h0.h5'], { headers: [cdl], map: 'map_f_case_16p.h5', ranks: 2, double: true });
 */
export async function e3sm(paths: readonly string[], options: E3smOptions = {}): Promise<E3smReport> {
  const { comm, ranks = 1, repeat = 1, read = false, copy = true, compress } = options;
  const { records = [], sizes = {}, double = false } = options;
  const texts = options.headers ?? [generateHeader()];
  if (texts.length !== paths.length || paths.length === 0)
    throw new H5LogError('OPTION', `${texts.length} headers for ${paths.length} files`);
  if (!Number.isSafeInteger(repeat) || repeat < 1)
    throw new H5LogError('OPTION', `repeat is a whole number from 1 up, not ${repeat}`);
  if (records.some((count) => !Number.isSafeInteger(count) || count < 0))
    throw new H5LogError('OPTION', `records are whole numbers, not ${records.join()}`);
  const map = typeof options.map === 'string' ? await readMap(options.map) : (options.map ?? generateMap());
  const files = planFiles(texts.map(parseCdl), map, { records, sizes, double });
  const task: E3smTask = { files, paths, map, repeat, read, copy, compress };
  if (comm) return e3smRank(comm, task);
  const [report] = await runThreads<E3smReport>(ranks, rankModule('e3sm-rank', import.meta.url), task);
  return report as E3smReport;
}
