import { join } from 'node:path';
import { type Dataset, type DType, File, type H5LogError, isH5LogError, select, T, type Where } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';
import { count } from '../counts.ts';
import { random, repeats, seed } from '../seed.ts';
import { temporaryDirectory } from '../temporary.ts';

interface Piece {
  readonly start: readonly number[];
  readonly count: readonly number[];
  readonly data: ArrayLike<unknown>;
}

async function collect(pieces: AsyncIterable<Piece>): Promise<Piece[]> {
  const list: Piece[] = [];
  for await (const piece of pieces) list.push(piece);
  return list;
}

const volume = (counts: readonly number[]): number => counts.reduce((a, b) => a * b, 1);

/** How often each element is covered, with its value checked against the row-major number that was written there. */
function coverage(shape: readonly number[], pieces: readonly Piece[]): Uint8Array {
  const seen = new Uint8Array(volume(shape));
  for (const { start, count, data } of pieces) {
    expect(data.length).toBe(volume(count));
    for (let i = 0; i < data.length; i++) {
      let at = 0;
      let rest = i;
      const inside = count.map(() => 0);
      for (let d = count.length - 1; d >= 0; d--) {
        inside[d] = rest % (count[d] as number);
        rest = Math.floor(rest / (count[d] as number));
      }
      for (let d = 0; d < shape.length; d++)
        at = at * (shape[d] as number) + (start[d] as number) + (inside[d] as number);
      expect(data[i]).toBe(at);
      seen[at] = (seen[at] as number) + 1;
    }
  }
  return seen;
}

function selected(dataset: Dataset<'float64'>, where: Where | undefined): Uint8Array {
  const expected = new Uint8Array(dataset.size);
  for (const at of dataset.readSync(where)) expected[at] = 1;
  return expected;
}

function numbered(file: File, shape: number[], chunks?: number[]): Dataset<'float64'> {
  const options = chunks ? { chunks } : {};
  const x = file.createDataset('x', { dtype: 'float64', shape, ...options });
  x.write(Float64Array.from({ length: volume(shape) }, (_, i) => i));
  return x;
}

describe.each(['log', 'native'] as const)('pieces (%s)', (connector) => {
  test('cover the selection exactly, in boxes of about the bytes asked for, along the chunks', async () => {
    const next = random(seed(`pieces of ${connector} datasets`));
    const below = (n: number): number => Math.floor(next() * n);
    const times = repeats(300);
    for (let i = 0; i < times; i++) {
      const shape = Array.from({ length: 1 + below(3) }, () => 1 + below(12));
      const chunks = below(2) === 0 ? undefined : shape.map((size) => 1 + below(size));
      const file = File.createSync(join(temporaryDirectory(), 'p.h5'), { connector });
      const x = numbered(file, shape, chunks);
      const start = shape.map((size) => below(size));
      const box = { start, count: shape.map((size, d) => 1 + below(size - (start[d] as number))) };
      const points = Array.from({ length: 5 }, () => shape.map((size) => below(size)));
      const where = [undefined, box, select.all().minus(box), { stride: shape.map(() => 2) }, select.points(points)][
        below(5)
      ];
      const bytes = 8 * (1 + below(40));
      const pieces = await collect(x.pieces(where, { bytes }));
      expect(coverage(shape, pieces)).toEqual(selected(x, where));
      for (const piece of pieces) expect(piece.data.length * 8).toBeLessThanOrEqual(bytes);
      if (chunks && volume(chunks) * 8 <= bytes && where === undefined) {
        for (const piece of pieces)
          for (let d = 0; d < shape.length; d++) expect((piece.start[d] as number) % (chunks[d] as number)).toBe(0);
      }
      file.closeSync();
    }
    count(`pieces of ${connector} datasets`, { datasets: times });
  });

  test('are few: as large as they may be', async () => {
    const file = File.createSync(join(temporaryDirectory(), 'p.h5'), { connector });
    const x = numbered(file, [64, 64], [8, 8]);
    // Two chunks by eight fit into 8 KiB: four pieces of 16 rows.
    expect((await collect(x.pieces(undefined, { bytes: 8192 }))).map(({ start, count }) => [start, count])).toEqual([
      [
        [0, 0],
        [16, 64],
      ],
      [
        [16, 0],
        [16, 64],
      ],
      [
        [32, 0],
        [16, 64],
      ],
      [
        [48, 0],
        [16, 64],
      ],
    ]);
    expect(await collect(x.pieces())).toHaveLength(1);
    file.closeSync();
  });
});

test('pieces of a scalar and of nothing', async () => {
  const file = File.createSync(memoryStorage());
  const s = file.createDataset('s', { dtype: 'int8', shape: [] });
  s.write(Int8Array.of(5));
  expect(await collect(s.pieces())).toEqual([{ start: [], count: [], data: Int8Array.of(5) }]);
  const e = file.createDataset('e', { dtype: 'int8', shape: [0, 3] });
  expect(await collect(e.pieces())).toEqual([]);
  expect(await collect(numbered(file, [3]).pieces(select.none()))).toEqual([]);
});

test('pieces of other types', async () => {
  const file = File.createSync(memoryStorage());
  const dtype: DType = T.compound({ a: 'int8', b: 'float64' });
  const x = file.createDataset('c', { dtype, shape: [5] });
  x.write([1, 2, 3, 4, 5].map((a) => ({ a, b: a / 2 })));
  const pieces = await collect(x.pieces({ start: [1] }, { bytes: 20 }));
  expect(pieces.map(({ data }) => data)).toEqual([
    [
      { a: 2, b: 1 },
      { a: 3, b: 1.5 },
    ],
    [
      { a: 4, b: 2 },
      { a: 5, b: 2.5 },
    ],
  ]);
});

test('an abort ends them', async () => {
  const file = File.createSync(memoryStorage());
  const x = numbered(file, [100]);
  const controller = new AbortController();
  const seen: number[] = [];
  const read = async () => {
    for await (const { start } of x.pieces(undefined, { bytes: 80, signal: controller.signal })) {
      seen.push(start[0] as number);
      if (seen.length === 3) controller.abort();
    }
  };
  await expect(read()).rejects.toMatchObject({ name: 'AbortError' });
  expect(seen).toEqual([0, 10, 20]);
});

test('pieces of a wrong size, and of what is outside, are refused', async () => {
  const file = File.createSync(memoryStorage());
  const x = numbered(file, [10]);
  const code = async (call: () => AsyncIterable<Piece>): Promise<unknown> => {
    try {
      await collect(call());
    } catch (error) {
      return isH5LogError(error) && (error as H5LogError).code;
    }
    return 'accepted';
  };
  for (const bytes of [0, -1, Number.NaN, '5'])
    expect(await code(() => x.pieces(undefined, { bytes: bytes as number }))).toBe('OPTION');
  expect(await code(() => x.pieces(undefined, { size: 5 } as never))).toBe('OPTION');
  expect(await code(() => x.pieces({ start: [11] }))).toBe('SELECTION');
});
