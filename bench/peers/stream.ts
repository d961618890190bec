import { scaledSize } from '../../src/bench/workload.ts';
import { type PeerFigure, type PeerTask, timed } from './peer.ts';

export const BLOCKS = 1024;
/** Elements of a block of 1 MiB. */
export const BLOCK = 2 ** 17;
/** So many blocks are made; those of a program are these over and over: more than a processor's cache holds. */
const MADE = 64;

/** Blocks at a scale: a gibibyte at 1. */
export function blocksAt(scale: number): number {
  return scaledSize(BLOCKS, scale);
}

/** A program that writes a one-dimensional dataset block by block. */
export interface BlocksProgram {
  /** From creating to closing; `block(i)` is what to write as block i, until the next one is asked for. */
  readonly write: (path: string, blocks: number, block: (i: number) => Float64Array) => void | Promise<void>;
  /** Elements of one block. */
  readonly read: (path: string, block: number, blocks: number) => Float64Array | Promise<Float64Array>;
}

/** A gibibyte in blocks of one mebibyte. */
export async function streamBlocks(program: BlocksProgram, path: string, { scale }: PeerTask): Promise<PeerFigure[]> {
  const blocks = blocksAt(scale);
  const made = Array.from({ length: Math.min(blocks, MADE) }, (_, i) =>
    new Float64Array(BLOCK).map((_, k) => i * BLOCK + k * 0.25),
  );
  const block = (i: number): Float64Array => {
    const values = made[i % made.length] as Float64Array;
    values[0] = i;
    return values;
  };
  const [seconds] = await timed(() => program.write(path, blocks, block));
  for (const i of new Set([0, blocks >> 1, blocks - 1])) {
    const expected = block(i);
    const found = await program.read(path, i, blocks);
    if (found.length !== BLOCK || found.some((value, k) => value !== expected[k]))
      throw new Error(`block ${i} of ${blocks} is not what was written`);
  }
  return [{ id: 'stream/write', seconds, part: 1 }];
}
