import { H5LogError } from '../base/errors.ts';
import { onAllRanksAsync } from '../comm/agreement.ts';
import type { Communicator } from '../comm/communicator.ts';
import { solo } from '../comm/solo.ts';
import { rankModule } from '../comm/threads/run.ts';
import type { CreateOptions } from '../connector/options.ts';
import { runThreads } from '../threads.ts';
import { parseCdl } from './cdl.ts';
import { type Decomposition, decomposition, readMap } from './decomposition.ts';
import { type PlanOptions, planFiles } from './e3sm-plan.ts';
import e3smRank, { type E3smReport, type E3smTask } from './e3sm-rank.ts';

export type { E3smReport, E3smTimes } from './e3sm-rank.ts';

export interface E3smOptions extends Partial<PlanOptions> {
  /** CDL texts, one for each file. Default: one generated header. */
  headers?: readonly string[];
  /** Path of the map, or its decompositions. Default: a generated map. */
  map?: string | readonly Decomposition[];
  /** Ranks that call this collectively; without it, threads are started. */
  comm?: Communicator;
  /** Number of threads; default 1. */
  ranks?: number;
  /** Number of repetitions; the first one is cold. */
  repeat?: number;
  /** Read everything back and check it, in each repetition. */
  read?: boolean;
  /** false: lend the buffers instead of copying the data. */
  copy?: boolean;
  /** Define the dimensions and coordinates of netCDF as well. */
  netcdf?: boolean;
  /** Whether metadata tables are compressed; default as in File.create. */
  compress?: boolean;
  /** Where logs live, and how tables are written. */
  create?: Pick<CreateOptions, 'logs' | 'table'>;
}

/**
 * Writes files as the E3SM climate model does: hundreds of variables, most of them divided into very many short runs. `paths` are the
 * files to write, one for each header.
 *
 * @example const { times } = await e3sm(['h0.h5'], { headers: [cdl], map: 'map_f_case_16p.h5', ranks: 2, double: true });
 */
export async function e3sm(paths: readonly string[], options: E3smOptions = {}): Promise<E3smReport> {
  const { comm, ranks = 1 } = options;
  const task = await onAllRanksAsync(comm ?? solo(), () => taskOf(paths, options));
  if (comm) return e3smRank(comm, task);
  const [report] = await runThreads<E3smReport>(ranks, rankModule('e3sm-rank', import.meta.url), task);
  return report as E3smReport;
}

async function taskOf(paths: readonly string[], options: E3smOptions): Promise<E3smTask> {
  const { repeat = 1, read = false, copy = true, netcdf = false, compress, create = {} } = options;
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
  return { files, paths, map, repeat, read, copy, netcdf, compress, create };
}

/** Sizes of the generated map and header: those of a small case of each model. */
interface GeneratedSizes {
  /** Columns of the atmosphere. */
  columns: number;
  levels: number;
  /** Cells of the ocean; `layers` in each. */
  cells: number;
  layers: number;
  /** Grid cells of the land model; no process writes those that are sea. */
  grid: number;
  processes: number;
}

const DEFAULT_SIZES: GeneratedSizes = { columns: 866, levels: 72, cells: 285, layers: 60, grid: 2000, processes: 16 };

/** Numbers in [0, 1), always the same: a benchmark must not vary with its data. */
function randomNumbers(): () => number {
  let state = 12345;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/**
 * Generates a map that resembles those of real cases: columns of the atmosphere are distributed in runs of 1 to 3, on each level alike;
 * a cell of the ocean is written with all its layers at once; the land model consists of scattered points with gaps.
 */
export function generateMap(sizes: Partial<GeneratedSizes> = {}): Decomposition[] {
  const { columns, levels, cells, layers, grid, processes } = { ...DEFAULT_SIZES, ...sizes };
  const random = randomNumbers();
  const dealt = (count: number): [number, number][][] => {
    const lists: [number, number][][] = Array.from({ length: processes }, () => []);
    for (let at = 0; at < count; ) {
      const length = Math.min(count - at, 1 + Math.floor(random() * 3));
      lists[Math.floor(random() * processes)]?.push([at, length]);
      at += length;
    }
    return lists;
  };
  const ofColumns = dealt(columns);
  const ofLevels = ofColumns.map((runs) =>
    Array.from({ length: levels }, (_, level) =>
      runs.map(([at, length]): [number, number] => [level * columns + at, length]),
    ).flat(),
  );
  const ofCells = dealt(cells).map((runs) =>
    runs.flatMap(([at, length]) => Array.from({ length }, (_, i): [number, number] => [(at + i) * layers, layers])),
  );
  const ofLand = dealt(grid).map((runs) => runs.filter(() => random() < 0.4).map(([at]): [number, number] => [at, 1]));
  return [
    decomposition('D1', [columns], ofColumns),
    decomposition('D2', [levels, columns], ofLevels),
    decomposition('D3', [cells, layers], ofCells),
    decomposition('D4', [grid], ofLand),
  ];
}

/** Generates a header with variables of all decompositions, about as many as a file of the atmosphere model has. */
export function generateHeader(sizes: Partial<GeneratedSizes> = {}): string {
  const { columns, levels, cells, layers, grid } = { ...DEFAULT_SIZES, ...sizes };
  const lines = [
    'netcdf generated {',
    'dimensions:',
    `\ttime = UNLIMITED ; // (1 currently)\n\tnbnd = 2 ;\n\tchars = 8 ;\n\tlev = ${levels} ;\n\tncol = ${columns} ;`,
    `\tnCells = ${cells} ;\n\tnVertLevels = ${layers} ;\n\tlndgrid = ${grid} ;`,
    'variables:',
    '\tdouble lat(ncol) ;\n\t\tlat:units = "degrees_north" ;',
    '\tdouble lon(ncol) ;\n\t\tlon:units = "degrees_east" ;',
    '\tdouble lev(lev) ;\n\t\tlev:long_name = "level" ;',
    '\tdouble P0 ;\n\t\tP0:units = "Pa" ;',
    '\tdouble time(time) ;\n\t\ttime:units = "days since 0001-01-01 00:00:00" ;',
    '\tdouble time_bnds(time, nbnd) ;',
    '\tint date(time) ;',
    '\tchar date_written(time, chars) ;',
  ];
  const add = (count: number, name: string, dimensions: string): void => {
    for (let i = 0; i < count; i++) {
      const full = `${name}${i}`;
      lines.push(`\tfloat ${full}(time, ${dimensions}) ;`);
      lines.push(`\t\t${full}:units = "kg/m2/s" ;`, `\t\t${full}:long_name = "${name} number ${i}" ;`);
      lines.push(`\t\t${full}:_FillValue = 1.e+20f ;`);
    }
  };
  add(320, 'SURFACE', 'ncol');
  add(64, 'LEVELS', 'lev, ncol');
  add(30, 'ocean', 'nCells, nVertLevels');
  add(40, 'LAND', 'lndgrid');
  lines.push('\n// global attributes:', '\t\t:title = "generated" ;', '}');
  return `${lines.join('\n')}\n`;
}
