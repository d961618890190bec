import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { replay as replayFile } from '../tools/replay/replay.ts';
import { shuffled } from './random.ts';
import { COLUMNS, valueAt, writeRows } from './small-rows.ts';
import { OrdinaryTable, TILE, Tiles } from './tiles.ts';
import { type Figure, scaledSize, steps, type Workload, type WorkloadOptions, wrongValue } from './workload.ts';

const ROWS = 1_000_000;
const KINDS = 3;
/** Distance between the rows that are checked. */
const SAMPLE_STEP = 997;

/** Converts log files to ordinary HDF5 on one thread. */
export const replay: Workload = {
  name: 'replay',
  summary: '1,000,000 shuffled blocks of 1x3 float64, and 1 GiB in tiles, converted to ordinary HDF5',
  async *run(options) {
    const { folder, scale, repeat, onProgress } = options;
    const done = steps(KINDS * (repeat + 1), onProgress);
    const order = shuffled(scaledSize(ROWS, scale));
    const rows = join(folder, 'replay-small.h5');
    writeRows(rows, order);
    await done();
    const many = `replay of ${order.length.toLocaleString('en')} shuffled blocks of 1x3 float64`;
    yield* figures('small', many, order.length * COLUMNS * 8, await timed(rows, options, checkSmall, done));

    const tiles = new Tiles(scale);
    for (const [kind, chunks] of [
      ['tiles', undefined],
      ['chunks', TILE],
    ] as const) {
      const path = join(folder, `replay-${kind}.h5`);
      tiles.write(path, chunks ? { chunks } : {});
      await done();
      const what = `replay of ${tiles.count.toLocaleString('en')} MiB in tiles of 512x256 float64, ${chunks ? 'chunks of the same' : 'contiguous'}`;
      const seconds = await timed(path, options, (output) => tiles.check(output), done);
      yield* figures(kind, what, tiles.bytes, seconds);
    }

    async function checkSmall(output: string): Promise<void> {
      const table = await OrdinaryTable.open(output, 'x');
      try {
        for (let row = 0; row < order.length; row += SAMPLE_STEP) {
          const column = row % COLUMNS;
          const found = await table.at(row, column);
          if (found !== valueAt(row, column)) throw wrongValue(output, [row, column], found, valueAt(row, column));
        }
      } finally {
        await table.close();
      }
    }
  },
};

async function timed(
  input: string,
  { repeat }: WorkloadOptions,
  check: (output: string) => Promise<void>,
  done: () => Promise<void>,
): Promise<number> {
  const output = input.replace(/\.h5$/, '-ordinary.h5');
  const times: number[] = [];
  for (let round = 0; round < repeat; round++) {
    rmSync(output, { force: true });
    times.push((await replayFile(input, output)).seconds);
    if (round === 0) await check(output);
    await done();
  }
  return Math.min(...times);
}

function* figures(kind: string, what: string, bytes: number, seconds: number): Iterable<Figure> {
  yield { id: `replay/${kind}`, what, value: seconds, unit: 's' };
  yield { id: `replay/${kind}/rate`, what: 'of data', value: bytes / 1e6 / seconds, unit: 'MB/s' };
}
