import { File } from 'h5log';

/** Elements of one rank in a row: enough that a flush takes some time. */
export const ROW = 20_000;

export const rowOf = (step: number, rank: number): Float64Array =>
  Float64Array.from({ length: ROW }, (_, i) => step * 1e6 + rank * ROW + i);

/** Every row of every rank must be there as of the last commit; gives the number of rows. */
export function checkRows(path: string, ranks: number): { rows: number; sequence: number } {
  const file = File.openSync(path);
  const dataset = file.dataset('rows', 'float64');
  const rows = dataset.shape[0] as number;
  for (let step = 0; step < rows; step++) {
    const row = dataset.readSync({ start: [step, 0], count: [1, ranks * ROW] });
    for (let rank = 0; rank < ranks; rank++) {
      const expected = rowOf(step, rank);
      for (let i = 0; i < ROW; i++) {
        if (row[rank * ROW + i] === expected[i]) continue;
        throw new Error(`row ${step} of rank ${rank}: ${row[rank * ROW + i]} instead of ${expected[i]} at ${i}`);
      }
    }
  }
  const { sequence } = file;
  file.closeSync();
  return { rows, sequence };
}
