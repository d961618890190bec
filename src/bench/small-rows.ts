import type { Dataset } from '../api/dataset.ts';
import { File } from '../api/file.ts';
import { secondsSince, wrongValue } from './workload.ts';

/*
 * A table of three columns: row r holds r, r + 0.5 and -r. Each row is posted by itself.
 */

export const COLUMNS = 3;

/** Creates a file with the dataset x. */
export function createRows(path: string, rows: number): { file: File; dataset: Dataset<'float64'> } {
  const file = File.createSync(path, { publish: 'never' });
  return { file, dataset: file.createDataset('x', { dtype: 'float64', shape: [rows, COLUMNS] }) };
}

/** Posts the rows in this order, one call each, and reuses one selection object. */
export function postRows(dataset: Dataset<'float64'>, order: Uint32Array): void {
  const where = { start: [0, 0], count: [1, COLUMNS] };
  const data = new Float64Array(COLUMNS);
  for (let i = 0; i < order.length; i++) {
    const row = order[i] as number;
    where.start[0] = row;
    data[0] = row;
    data[1] = row + 0.5;
    data[2] = -row;
    dataset.write(data, where);
  }
}

/** The rows in this order as arguments of `writeMany`. */
export function manyRows(order: Uint32Array): { data: Float64Array; starts: Float64Array; count: number[] } {
  const data = new Float64Array(order.length * COLUMNS);
  const starts = new Float64Array(order.length * 2);
  for (let i = 0; i < order.length; i++) {
    const row = order[i] as number;
    starts[2 * i] = row;
    data[COLUMNS * i] = row;
    data[COLUMNS * i + 1] = row + 0.5;
    data[COLUMNS * i + 2] = -row;
  }
  return { data, starts, count: [1, COLUMNS] };
}

/** Writes a file of these rows, each a block of its own, and closes it. A flush joins small blocks, but not those whose data is lent. */
export function writeRows(path: string, order: Uint32Array): void {
  const { file, dataset } = createRows(path, order.length);
  const { data, starts, count } = manyRows(order);
  dataset.writeMany(data, starts, count, { copy: false });
  file.closeSync();
}

/** Opens the file and reads one row. Returns the seconds. */
export function readRow(path: string, row: number): number {
  const begun = performance.now();
  const file = File.openSync(path);
  const values = file.dataset('x', 'float64').readSync({ start: [row, 0], count: [1, COLUMNS] });
  const seconds = secondsSince(begun);
  file.closeSync();
  checkRows(path, values, row, 1);
  return seconds;
}

/** Throws unless these are the values of the rows from `first` on. */
export function checkRows(path: string, values: Float64Array, first: number, rows: number): void {
  if (values.length !== rows * COLUMNS) throw wrongValue(path, [first], `${values.length} values`, rows * COLUMNS);
  for (let i = 0; i < values.length; i += COLUMNS) {
    const row = first + i / COLUMNS;
    for (let column = 0; column < COLUMNS; column++) {
      const expected = valueAt(row, column);
      if (values[i + column] !== expected) throw wrongValue(path, [row, column], values[i + column], expected);
    }
  }
}

export function valueAt(row: number, column: number): number {
  return column === 0 ? row : column === 1 ? row + 0.5 : 0 - row;
}
