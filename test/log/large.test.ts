import { File, type Filter, select } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';
import { count } from '../counts.ts';
import { random, repeats, seed } from '../seed.ts';
import { faultyStorage } from '../storage/faulty.ts';
import { below, chance, type Random } from './model/types.ts';

// What small programs never reach: trees over blocks, tables that do not stay in memory, windows, pieces, large arenas.

const SHAPE = [700, 900] as const;
const [ROWS, COLUMNS] = SHAPE;

interface Box {
  readonly start: [number, number];
  readonly count: [number, number];
}

function randomBox(next: Random, rows: number, columns: number): Box {
  const count: [number, number] = [1 + below(next, rows), 1 + below(next, columns)];
  return { start: [below(next, ROWS - count[0] + 1), below(next, COLUMNS - count[1] + 1)], count };
}

/** Puts values into the box of a plain array, or takes them out. */
function writeBox(model: Int32Array, { start, count }: Box, values: Int32Array, from = 0): void {
  for (let y = 0; y < count[0]; y++) {
    model.set(values.subarray(from + y * count[1], from + (y + 1) * count[1]), (start[0] + y) * COLUMNS + start[1]);
  }
}

function readBox(model: Int32Array, { start, count }: Box): Int32Array {
  const out = new Int32Array(count[0] * count[1]);
  for (let y = 0; y < count[0]; y++) {
    const from = (start[0] + y) * COLUMNS + start[1];
    out.set(model.subarray(from, from + count[1]), y * count[1]);
  }
  return out;
}

const same = (got: Int32Array, expected: Int32Array): boolean => Buffer.compare(bytesOf(got), bytesOf(expected)) === 0;
const bytesOf = (list: Int32Array): Uint8Array => new Uint8Array(list.buffer, list.byteOffset, list.byteLength);

describe('large datasets', () => {
  const kinds: Record<string, { filters?: Filter[]; chunks?: number[]; table?: object; indexLimit?: number }> = {
    plain: {},
    'without merging': { table: { merge: false, share: false } },
    'without encoding and compression': { table: { encode: false, compress: false } },
    'with an index in parts': { indexLimit: 100_000 },
    'filtered, without chunks': { filters: ['shuffle', { deflate: 1 }] },
    'filtered, in chunks': { filters: [{ deflate: 1 }, 'fletcher32'], chunks: [64, 128] },
  };
  for (const [name, { table, indexLimit, ...kind }] of Object.entries(kinds)) {
    test(name, { timeout: 300_000 }, async () => {
      const next = random(seed(`large log ${name}`));
      let [blocks, read] = [0, 0];
      for (let n = repeats(10); n > 0; n--) {
        const storage = chance(next, 0.5) ? memoryStorage() : faultyStorage({ delays: true, seed: n });
        const options = indexLimit === undefined ? {} : { indexLimit };
        let file = await File.create(storage, { ...options, ...(table && { table }) });
        file.createDataset('d', { dtype: 'int32', shape: SHAPE, ...kind });
        const model = new Int32Array(ROWS * COLUMNS);
        const check = async (times: number): Promise<void> => {
          const d = file.dataset('d', 'int32');
          for (let i = 0; i < times; i++) {
            const box = chance(next, 0.9) ? randomBox(next, 30, 30) : randomBox(next, ROWS, COLUMNS);
            const expected = readBox(model, box);
            read += expected.length;
            const got = chance(next, 0.5) ? d.readSync(box) : await d.read(box);
            if (!same(got, expected)) throw new Error(`${name}: box ${JSON.stringify(box)} differs`);
          }
        };
        const late: Promise<boolean>[] = [];
        for (let round = 0; round < 12; round++) {
          const d = file.dataset('d', 'int32');
          const fill = (size: number): Int32Array => Int32Array.from({ length: size }, () => below(next, 2 ** 31));
          const what = next();
          if (what < 0.5) {
            // Thousands of small blocks in one call, in any order.
            const many = chance(next, 0.2) ? 25_000 : 4000;
            const boxes = Array.from({ length: kind.filters ? 300 : many }, () => randomBox(next, 3, 6));
            const values = fill(boxes.reduce((sum, { count }) => sum + count[0] * count[1], 0));
            d.writeMany(
              values,
              boxes.flatMap(({ start }) => start),
              boxes.flatMap(({ count }) => count),
            );
            let at = 0;
            for (const box of boxes) {
              writeBox(model, box, values, at);
              at += box.count[0] * box.count[1];
            }
            blocks += boxes.length;
          } else if (what < 0.7) {
            const stride: [number, number] = [2 + below(next, 5), 2 + below(next, 20)];
            const count: [number, number] = [below(next, ROWS / 6), below(next, COLUMNS / 40)];
            const values = fill(count[0] * count[1]);
            d.write(values, select.hyperslab({ start: [1, 1], stride, count }));
            for (let y = 0, i = 0; y < count[0]; y++) {
              for (let x = 0; x < count[1]; x++, i++)
                model[(1 + y * stride[0]) * COLUMNS + 1 + x * stride[1]] = values[i] as number;
            }
            blocks += values.length;
          } else {
            const box = randomBox(next, ROWS, COLUMNS);
            const values = fill(box.count[0] * box.count[1]);
            d.write(values, box, chance(next, 0.5) ? { copy: false } : undefined);
            writeBox(model, box, values);
            blocks++;
          }
          await check(20);
          // Reads that end only after what comes next must not see it.
          const reads = Array.from({ length: 5 }, () => {
            const box = randomBox(next, 60, 60);
            const expected = readBox(model, box);
            return d
              .read(select.box(box.start, box.count).minus(select.box(box.start, [1, 1])))
              .then((got) => same(got, expected.subarray(1)));
          });
          late.push(...reads);
          if (chance(next, 0.7)) void file.flush();
          else file.flushSync();
          await check(20);
          if (chance(next, 0.15)) {
            await Promise.all(late);
            await file.close();
            if ('reopen' in storage) storage.reopen();
            file = await File.open(storage, { mode: 'r+', ...options });
            await check(10);
          }
        }
        expect((await Promise.all(late)).every((right) => right)).toBe(true);
        await file.close();
        if ('reopen' in storage) storage.reopen();
        file = await File.open(storage, options);
        await check(100);
        expect(same(await file.dataset('d', 'int32').read(), model)).toBe(true);
        await file.close();
      }
      count(`large log ${name}`, { blocks, 'elements compared': read });
    });
  }
});
