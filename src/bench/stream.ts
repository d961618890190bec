import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { File } from '../api/file.ts';
import {
  Best,
  type Figure,
  plainWrites,
  scaledSize,
  secondsSince,
  steps,
  type Workload,
  wrongValue,
} from './workload.ts';

const MIB = 2 ** 20;
const BLOCKS = 1024;
const BLOCK = MIB / 8;

/** A way to write the data. */
interface Variant {
  readonly id: string;
  readonly what: string;
  readonly isAsync: boolean;
  readonly copy: boolean;
  readonly checksum: boolean;
}

const VARIANTS: readonly Variant[] = [true, false].flatMap((isAsync) =>
  [true, false].flatMap((checksum) => [false, true].map((copy) => variant(isAsync, copy, checksum))),
);

function variant(isAsync: boolean, copy: boolean, checksum: boolean): Variant {
  const id = `stream/${isAsync ? 'async' : 'sync'}-${copy ? 'copied' : 'lent'}${checksum ? '' : '-unchecked'}`;
  const what = `${isAsync ? 'flush()' : 'flushSync()'}, ${copy ? 'copied' : 'lent buffers'}${checksum ? '' : ', no checksums'}`;
  return { id, what, isAsync, copy, checksum };
}

const TURNS: readonly (Variant | 'plain')[] = ['plain', ...VARIANTS];

/**
 * Large blocks, compared with a loop of plain writes of the same bytes, both timed from open to close. Neither syncs. Every repetition
 * runs all variants and starts with another one, so that all of them see the same state of the machine.
 */
export const stream: Workload = {
  name: 'stream',
  summary: '1 GiB in blocks of 1 MiB: eight ways to write it, against plain writes',
  async *run({ folder, scale, repeat, onProgress }) {
    const blocks = scaledSize(BLOCKS, scale);
    const source = new Float64Array(blocks * BLOCK);
    for (let i = 0; i < source.length; i++) source[i] = i * 0.25;
    const path = join(folder, 'stream.h5');
    const done = steps(repeat * TURNS.length + 1, onProgress);
    const plain = (): number => plainWrites(join(folder, 'stream.plain'), source);
    // Not measured: the first writer pays for memory that the page cache does not have yet.
    plain();
    await done();
    const best = new Best();
    for (let round = 0; round < repeat; round++) {
      for (let turn = 0; turn < TURNS.length; turn++) {
        // The last repetition ends with a variant, whose file is left.
        const way = TURNS[(turn + repeat - 1 - round) % TURNS.length] as Variant | 'plain';
        // Dirty pages of the previous variant must not slow down the next one.
        rmSync(path, { force: true });
        if (way === 'plain') best.add(way, plain());
        else {
          best.add(way.id, await write(path, source, way));
          if (round === 0 && way === VARIANTS[0]) check(path, source);
        }
        await done();
      }
    }
    yield* figures(blocks, best);
  },
};

function* figures(blocks: number, best: Best): Iterable<Figure> {
  const plain = best.of('plain');
  const what = `${blocks.toLocaleString('en')} MiB by plain fs.writeSync of 8 MiB`;
  yield { id: 'stream/plain', what, value: plain, unit: 's' };
  for (const { id, what } of VARIANTS) {
    yield { id, what: `  in blocks of 1 MiB: ${what}`, value: best.of(id), unit: 's' };
    yield { id: `${id}/ratio`, what: 'the plain rate', value: plain / best.of(id), unit: 'x' };
  }
}

async function write(path: string, source: Float64Array, { isAsync, copy, checksum }: Variant): Promise<number> {
  const begun = performance.now();
  const file = File.createSync(path, { checksum, publish: 'never' });
  const dataset = file.createDataset('x', { dtype: 'float64', shape: [source.length] });
  for (let at = 0; at < source.length; at += BLOCK)
    dataset.write(source.subarray(at, at + BLOCK), { start: [at], count: [BLOCK] }, { copy });
  if (isAsync) await file.flush();
  else file.flushSync();
  file.closeSync();
  return secondsSince(begun);
}

function check(path: string, source: Float64Array): void {
  const file = File.openSync(path);
  const dataset = file.dataset('x', 'float64');
  for (let at = 0; at < source.length; at += BLOCK) {
    const found = dataset.readSync({ start: [at], count: [BLOCK] });
    for (let i = 0; i < BLOCK; i++)
      if (found[i] !== source[at + i]) throw wrongValue(path, [at + i], found[i], source[at + i]);
  }
  file.closeSync();
}
