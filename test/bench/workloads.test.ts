import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { File } from 'h5log';
import { replay, seal, stat } from 'h5log/tools';
import { describe, expect, test } from 'vitest';
import { type ExternalTask, runExternal } from '../../src/bench/external.ts';
import { shuffled } from '../../src/bench/random.ts';
import smallHeap from '../../src/bench/small-heap.ts';
import { checkRows, manyRows } from '../../src/bench/small-rows.ts';
import { OrdinaryTable, TILE, Tiles } from '../../src/bench/tiles.ts';
import { Best, type Figure, median } from '../../src/bench/workload.ts';
import { type ShippedWorkload, workloads } from '../../src/bench/workloads.ts';
import { solo } from '../../src/comm/solo.ts';
import { temporaryDirectory } from '../temporary.ts';

interface Measured {
  readonly folder: string;
  readonly figures: readonly Figure[];
  readonly progress: readonly number[];
  value(id: string): number;
}

async function measure(name: string, scale: number, repeat = 2): Promise<Measured> {
  const folder = temporaryDirectory();
  const workload = workloads.find((one) => one.name === name) as ShippedWorkload;
  const figures: Figure[] = [];
  const progress: number[] = [];
  const options = { folder, scale, repeat, onProgress: (done: number) => void progress.push(done) };
  for await (const figure of workload.run(options)) figures.push(figure);
  expect(figures.map(({ id }) => id)).toContain(workload.headline);
  expect(figures.find(({ id }) => id === workload.headline)?.unit).toBe('s');
  expect(progress.at(-1)).toBe(1);
  expect(progress).toEqual([...progress].sort((a, b) => a - b));
  const found = new Map(figures.map(({ id, value }) => [id, value]));
  return { folder, figures, progress, value: (id) => found.get(id) as number };
}

function units({ figures }: Measured): Record<string, string> {
  for (const { id, unit, value } of figures)
    if (unit !== 'count' && unit !== 'bytes') expect(value, id).toBeGreaterThan(0);
  return Object.fromEntries(figures.map(({ id, unit }) => [id, unit]));
}

describe('the workload', () => {
  test('small', async () => {
    const measured = await measure('small', 0.002);
    const parts = ['write', 'post', 'flush', 'close', 'write-many', 'open', 'read', 'random'];
    const ids = ['ordered', 'shuffled'].flatMap((order) => parts.map((part) => `small/${order}/${part}`));
    expect(units(measured)).toEqual({
      ...Object.fromEntries(ids.map((id) => [id, 's'])),
      'small/heap': 'bytes',
      'small/collections': 'count',
    });
    const { value, folder } = measured;
    for (const order of ['ordered', 'shuffled']) {
      const [post, flush, close, write] = ['post', 'flush', 'close', 'write'].map((part) =>
        value(`small/${order}/${part}`),
      ) as [number, number, number, number];
      expect(post + flush + close).toBeLessThanOrEqual(write + 1e-9);
    }
    // In whatever order they were posted, the flush makes one block of rows that cover the dataset.
    const [ordered, random] = await Promise.all(
      ['ordered', 'shuffled'].map((order) => stat(join(folder, `small-${order}.h5`))),
    );
    expect(ordered?.datasets[0]?.blocks).toBe(1);
    expect(random?.datasets[0]?.blocks).toBe(1);
    expect([ordered?.requests, random?.requests]).toEqual([2000, 2000]);
  });

  test('stream', async () => {
    const measured = await measure('stream', 3 / 1024);
    const forms = ['async', 'sync'].flatMap((how) =>
      ['lent', 'copied'].flatMap((whose) => ['', '-unchecked'].map((sums) => `stream/${how}-${whose}${sums}`)),
    );
    expect(units(measured)).toEqual({
      'stream/plain': 's',
      ...Object.fromEntries(
        forms.flatMap((id) => [
          [id, 's'],
          [`${id}/ratio`, 'x'],
        ]),
      ),
    });
    const { value, folder } = measured;
    for (const id of forms) expect(value(`${id}/ratio`)).toBeCloseTo(value('stream/plain') / value(id), 9);
    // The plain file is gone, and so are those of all forms but the last.
    expect(readdirSync(folder)).toEqual(['stream.h5']);
    expect(statSync(join(folder, 'stream.h5')).size).toBeGreaterThan(3 * 2 ** 20);
  });

  test('flushes', async () => {
    const measured = await measure('flushes', 0.003);
    expect(units(measured)).toEqual({
      'flushes/total': 's',
      'flushes/first': 'ms',
      'flushes/last': 'ms',
      'flushes/growth': 'bytes',
    });
    const { value, folder } = measured;
    const path = join(folder, 'flushes.h5');
    expect(value('flushes/growth')).toBeCloseTo(statSync(path).size / 300 - 1024, 6);
    expect(value('flushes/growth')).toBeGreaterThan(0);
    // The medians are of two tenths; no time is longer than all of them together.
    expect((value('flushes/first') + value('flushes/last')) * 15).toBeLessThan(value('flushes/total') * 1000);
    expect((await stat(path)).flushes.filter(({ data }) => data === 1024)).toHaveLength(300);
  });

  test('open', async () => {
    const measured = await measure('open', 0.001);
    expect(units(measured)).toEqual({ 'open/list': 's', 'open/first': 's', 'open/table': 'bytes' });
    const { tables, datasets } = await stat(join(measured.folder, 'open.h5'));
    expect(measured.value('open/table')).toBe(tables.bytes);
    // As many as its title says, but for neighbours that happen to follow one another: what a flush joins would be a single one.
    expect(datasets[0]?.blocks).toBeGreaterThan(3980);
  });

  test('replay', async () => {
    const measured = await measure('replay', 4 / 1024);
    expect(units(measured)).toEqual(
      Object.fromEntries(
        ['small', 'tiles', 'chunks'].flatMap((kind) => [
          [`replay/${kind}`, 's'],
          [`replay/${kind}/rate`, 'MB/s'],
        ]),
      ),
    );
    const { value, folder } = measured;
    expect((await stat(join(folder, 'replay-small.h5'))).datasets[0]?.blocks).toBeGreaterThan(3880);
    expect(value('replay/tiles/rate')).toBeCloseTo((4 * 2 ** 20) / 1e6 / value('replay/tiles'), 6);
    expect(value('replay/small/rate')).toBeCloseTo((3906 * 24) / 1e6 / value('replay/small'), 6);
    const file = await File.open(join(folder, 'replay-chunks-ordinary.h5'));
    expect(file.dataset('x').chunks).toEqual(TILE);
    await file.close();
  });

  test('seal', async () => {
    const measured = await measure('seal', 5 / 1024);
    expect(units(measured)).toEqual({ 'seal/tiles': 's', 'seal/moved': 'bytes', 'seal/copy': 's' });
    expect(measured.value('seal/moved')).toBe(0);
    // Both are ordinary now: there is no log to seal any more.
    for (const name of ['seal.h5', 'seal-copy.h5'])
      await expect(seal(join(measured.folder, name))).rejects.toMatchObject({ code: 'UNSUPPORTED' });
  });
});

describe('what workloads check with', () => {
  test('a post leaves nothing on the heap', async () => {
    const posts = 300_000;
    const { growth, collections } = await smallHeap(solo(), { path: join(temporaryDirectory(), 'heap.h5'), posts });
    // The smallest object that a post could leave has some 24 bytes.
    expect(growth / posts).toBeLessThan(8);
    expect(collections).toBeLessThan(30);
    process.stdout.write(`${posts} posts: ${growth} bytes of heap, ${collections} collections\n`);
  });

  test('shuffled numbers are all of them, in no order', () => {
    const order = shuffled(1000);
    expect([...order].sort((a, b) => a - b)).toEqual(Array.from({ length: 1000 }, (_, i) => i));
    expect(order.filter((n, i) => n === i).length).toBeLessThan(20);
    expect(shuffled(1000)).toEqual(order);
  });

  test('rows with a wrong value are refused', () => {
    const { data } = manyRows(Uint32Array.of(5, 6, 7));
    expect(() => checkRows('x.h5', data, 5, 3)).not.toThrow();
    expect(() => checkRows('x.h5', data, 4, 3)).toThrow('x.h5: element 4, 0 is 5, but 4 was written');
    expect(() => checkRows('x.h5', data, 5, 4)).toThrow('9 values');
    data[7] = 7;
    expect(() => checkRows('x.h5', data, 5, 3)).toThrow('element 7, 1 is 7, but 7.5 was written');
  });

  test('tiles are where libhdf5 finds them, and a wrong one is refused', async () => {
    const folder = temporaryDirectory();
    const tiles = new Tiles(6 / 1024);
    const [rows, columns] = tiles.shape;
    expect(tiles.bytes).toBe(rows * columns * 8);
    for (const options of [{}, { chunks: TILE }]) {
      const [log, path] = [join(folder, 'log.h5'), join(folder, 'ordinary.h5')];
      tiles.write(log, options);
      await replay(log, path, { force: true });
      await tiles.check(path);
      const table = await OrdinaryTable.open(path, 'x');
      const file = await File.open(path, { connector: 'native' });
      const dataset = file.dataset('x', 'float64');
      for (const [row, column] of [
        [0, 0],
        [1, 2],
        [300, 700],
        [rows - 1, columns - 1],
      ] as const) {
        const [value] = await dataset.read({ start: [row, column], count: [1, 1] });
        expect(await table.at(row, column)).toBe(value);
      }
      await file.close();
      await table.close();
      // The last element of the last tile.
      const bytes = readFileSync(path);
      const last = new Uint8Array(Float64Array.of(tiles.count * 512 * 256 - 1).buffer);
      const at = bytes.indexOf(last);
      bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
      writeFileSync(path, bytes);
      await expect(tiles.check(path)).rejects.toMatchObject({ code: 'MISMATCH' });
    }
  });

  test('the best time is the shortest, the median the one in the middle', () => {
    const best = new Best();
    for (const seconds of [3, 1, 2]) best.add('a', seconds);
    expect([best.of('a'), best.of('b')]).toEqual([1, Number.POSITIVE_INFINITY]);
    expect(median([5, 1, 9, 2, 3])).toBe(3);
  });
});

describe('an external program', () => {
  const folder = temporaryDirectory();
  const task: ExternalTask = { workload: 'small', folder, scale: 0.5 };

  test.each([
    ['echo 1.5', 1.5],
    ['echo "2 files"; echo "h5py3: 10 rows in .25 s"; echo; echo', 0.25],
    ['echo "took 3e-2s (best of h5py3)"', 0.03],
    ['echo 7 >&2; echo seconds=4', 4],
  ])('%s takes %f s', async (command, seconds) => {
    expect(await runExternal(command, task)).toBe(seconds);
  });

  test('is told what to do', async () => {
    const command = 'echo "$H5LOG_BENCH_WORKLOAD" > "$H5LOG_BENCH_FOLDER/told"; echo "$H5LOG_BENCH_SCALE"';
    expect(await runExternal(command, task)).toBe(0.5);
    expect(existsSync(join(folder, 'told'))).toBe(true);
    expect(readFileSync(join(folder, 'told'), 'utf8')).toBe('small\n');
  });

  test.each([
    ['echo 1; exit 3', 'ended with exit code 3'],
    ['echo 1; echo no such data >&2; exit 1', 'ended with exit code 1: no such data'],
    ['echo 1; kill -9 $$', 'was ended by SIGKILL'],
    ['h5log-no-such-program', 'ended with exit code 127'],
    ['echo 1.5; echo done', 'must print its seconds in the last line, not "done"'],
    ['true', 'must print its seconds in the last line, not ""'],
    ['echo 0', 'cannot have taken 0 seconds'],
    ['echo -2', 'cannot have taken -2 seconds'],
    ['echo 1e999', 'cannot have taken 1e999 seconds'],
  ])('%s is an error', async (command, message) => {
    await expect(runExternal(command, task)).rejects.toMatchObject({
      code: 'OPTION',
      message: expect.stringContaining(`the external program ${JSON.stringify(command)} ${message}`),
    });
  });
});
