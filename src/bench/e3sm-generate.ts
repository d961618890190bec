import { type Decomposition, decomposition } from './decomposition.ts';

/** The sizes of what is made up: those of a small case of each model. */
export interface MadeUp {
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
