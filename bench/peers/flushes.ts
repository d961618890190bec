import { scaledSize, wrongValue } from '../../src/bench/workload.ts';
import { type PeerFigure, type PeerTask, partOf, timed } from './peer.ts';

export const FLUSHES = 100_000;
/** Elements of a row of 1 KiB. */
export const ROW = 128;

/** Flushes at a scale: a hundred thousand at 1. */
export function flushesAt(scale: number): number {
  return scaledSize(FLUSHES, scale, 10);
}

/** A program that grows a dataset of rows. */
export interface GrowingProgram {
  /** From creating to closing: a row, which `row(i)` gives, then a flush, so many times. */
  readonly write: (path: string, flushes: number, row: (i: number) => Float64Array) => void | Promise<void>;
  /** All rows. */
  readonly read: (path: string, flushes: number) => Float64Array | Promise<Float64Array>;
  /** Flushes that it does in a few seconds; Infinity: as many as there are. */
  readonly most: number;
}

/** Rows of 1 KiB, each safe in the file before the next one comes. */
export async function rowFlushes(program: GrowingProgram, path: string, task: PeerTask): Promise<PeerFigure[]> {
  const { count, part } = partOf(flushesAt(task.scale), program.most, task);
  const values = new Float64Array(ROW);
  const row = (i: number): Float64Array => values.fill(i);
  const [seconds] = await timed(() => program.write(path, count, row));
  const found = await program.read(path, count);
  if (found.length !== count * ROW) throw wrongValue(path, [], `a row of ${found.length / ROW}`, `one of ${count}`);
  for (let i = 0; i < found.length; i++)
    if (found[i] !== Math.floor(i / ROW)) throw wrongValue(path, [i], found[i], Math.floor(i / ROW));
  return [{ id: 'flushes/total', seconds: seconds / part, part }];
}
