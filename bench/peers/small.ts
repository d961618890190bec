import { rmSync } from 'node:fs';
import { shuffled } from '../../src/bench/random.ts';
import { COLUMNS, checkRows } from '../../src/bench/small-rows.ts';
import { scaledSize, wrongValue } from '../../src/bench/workload.ts';
import { type PeerFigure, type PeerTask, partOf, timed } from './peer.ts';

export const ROWS = 1_000_000;
export const READS = 1_000;
/** Rows of one random read. */
export const BOX = 10;

/** A program with a dataset of rows of 3 float64. */
export interface RowsProgram {
  readonly create: (path: string, rows: number) => RowsFile | Promise<RowsFile>;
  readonly open: (path: string, rows: number) => RowsFile | Promise<RowsFile>;
  /** Rows that it writes in a few seconds; Infinity: as many as there are. */
  readonly most: number;
}

export interface RowsFile {
  /** Writes these rows one by one, each with what {@link setRow} says. */
  writeEach(order: Uint32Array): void | Promise<void>;
  /** Writes all rows at once. */
  writeAll(values: Float64Array): void | Promise<void>;
  readAll(): Float64Array | Promise<Float64Array>;
  /** Reads 10 rows from each of these on. */
  readEach(starts: Uint32Array): Float64Array[] | Promise<Float64Array[]>;
  close(): void;
}

/** Rows at a scale: a million at 1. */
export function rowsAt(scale: number): number {
  return scaledSize(ROWS, scale, 2 * BOX);
}

/** The values of row r. */
export function setRow(into: Float64Array, r: number, at = 0): void {
  into[at] = r;
  into[at + 1] = r + 0.5;
  into[at + 2] = -r;
}

/** A million rows of 24 bytes, one by one, in two orders; then all of them at once, and a thousand boxes. */
export async function smallRows(program: RowsProgram, path: string, task: PeerTask): Promise<PeerFigure[]> {
  const rows = rowsAt(task.scale);
  const { count, part } = partOf(rows, program.most, task);
  const figures: PeerFigure[] = [];
  for (const order of ['ordered', 'shuffled'] as const) {
    const each = (order === 'ordered' ? inOrder(rows) : shuffled(rows)).subarray(0, count);
    // A directory of chunks would keep those of the time before.
    rmSync(path, { recursive: true, force: true });
    const [creating, file] = await timed(() => program.create(path, rows));
    const [writing] = await timed(() => file.writeEach(each));
    const [closing] = await timed(() => file.close());
    await checkWritten(program, path, rows, each);
    if (part < 1) await completeRows(program, path, rows);
    const [reading, all] = await timed(() => readAll(program, path, rows));
    checkRows(path, all, 0, rows);
    const starts = Uint32Array.from({ length: READS }, (_, i) => (i * 7919) % (rows - BOX + 1));
    const reader = await program.open(path, rows);
    const [random, boxes] = await timed(() => reader.readEach(starts));
    reader.close();
    for (let i = 0; i < READS; i++) checkRows(path, boxes[i] as Float64Array, starts[i] as number, BOX);
    figures.push(
      { id: `small/${order}/write`, seconds: creating + writing / part + closing, part },
      { id: `small/${order}/read`, seconds: reading, part: 1 },
      { id: `small/${order}/random`, seconds: random, part: 1 },
    );
  }
  return figures;
}

async function readAll({ open }: RowsProgram, path: string, rows: number): Promise<Float64Array> {
  const file = await open(path, rows);
  const values = await file.readAll();
  file.close();
  return values;
}

/** Rows that nobody wrote are zeros. */
async function checkWritten(program: RowsProgram, path: string, rows: number, order: Uint32Array): Promise<void> {
  const found = await readAll(program, path, rows);
  const expected = new Float64Array(rows * COLUMNS);
  for (const r of order) setRow(expected, r, r * COLUMNS);
  for (let i = 0; i < expected.length; i++)
    if (found[i] !== expected[i]) throw wrongValue(path, [i], found[i], expected[i]);
}

/** What is read is always all of it. */
async function completeRows(program: RowsProgram, path: string, rows: number): Promise<void> {
  const values = new Float64Array(rows * COLUMNS);
  for (let r = 0; r < rows; r++) setRow(values, r, r * COLUMNS);
  const file = await program.create(path, rows);
  await file.writeAll(values);
  file.close();
}

function inOrder(n: number): Uint32Array {
  return Uint32Array.from({ length: n }, (_, i) => i);
}
