import { H5LogError } from '../base/errors.ts';
import type { Communicator } from '../comm/communicator.ts';
import { runThreads } from '../threads.ts';
import { rankModule } from '../tools/rank-module.ts';
import { parseCdl } from './cdl.ts';
import { type Decomposition, decomposition, readMap } from './decomposition.ts';
import { type PlanOptions, planFiles } from './e3sm-plan.ts';
import e3smRank, { type E3smReport, type E3smTask } from './e3sm-rank.ts';

export type { E3smReport, E3smTimes } from './e3sm-rank.ts';

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

/** The sizes of what is made up: those of a small case of each model. */
interface MadeUp {
  /** Columns of the atmosphere. */
  columns: number;
  levels: number;
  /** Cells of the ocean, and layers in each. */
  cells: number;
  layers: number;
  /** Grid cells of the land model; nobody writes those that are sea. */
  grid: number;
  processes: number;
}

const USUAL: MadeUp = { columns: 866, levels: 72, cells: 285, layers: 60, grid: 2000, processes: 16 };

/** Numbers in [0, 1), always the same ones: a benchmark must not vary by what it writes. */
function randomNumbers(): () => number {
  let state = 12345;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/**
 * A map as those of real cases are: the columns of the atmosphere are dealt out in runs of 1 to 3, and so is each of their levels; a cell of the ocean is
 * written with all its layers at once; of the land model there are scattered points, and not everywhere.
 */
export function generateMap(sizes: Partial<MadeUp> = {}): Decomposition[] {
  const { columns, levels, cells, layers, grid, processes } = { ...USUAL, ...sizes };
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

/** The header of a file with variables of all kinds, in numbers as in the atmosphere's. */
export function generateHeader(sizes: Partial<MadeUp> = {}): string {
  const { columns, levels, cells, layers, grid } = { ...USUAL, ...sizes };
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
  lines.push('\n// global attributes:', '\t\t:title = "made up" ;', '}');
  return `${lines.join('\n')}\n`;
}
