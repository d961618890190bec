import { join } from 'node:path';
import { File, T } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';
import { temporaryDirectory } from '../temporary.ts';
import { thrown } from './refusal.ts';

describe.each(['log', 'native'] as const)('append (%s)', (connector) => {
  test('grows dimension 0 by whole rows, posts them and returns the first new row', () => {
    const path = join(temporaryDirectory(), 'append.h5');
    const file = File.createSync(path, { connector });
    const x = file.createDataset('x', { dtype: 'float64', shape: [0, 2], maxShape: [null, 2], chunks: [4, 2] });
    expect(x.append(Float64Array.of(1, 2))).toBe(0);
    expect(x.append([3, 4, 5, 6])).toBe(1);
    expect(x.append(Float32Array.of(7, 8), { copy: true })).toBe(3);
    expect(x.append([])).toBe(4);
    expect(x.shape).toEqual([4, 2]);
    expect(x.readSync()).toEqual(Float64Array.of(1, 2, 3, 4, 5, 6, 7, 8));
    file.closeSync();
    const again = File.openSync(path, { mode: 'r+', connector });
    const y = again.dataset('x', 'float64');
    expect(y.append([9, 10])).toBe(4);
    again.closeSync();
    const last = File.openSync(path, { connector });
    expect(last.dataset('x').shape).toEqual([5, 2]);
    expect(last.dataset('x').readSync()).toEqual(Float64Array.of(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
    last.closeSync();
  });

  test('refuses parts of rows, scalars and rows beyond maxShape, and changes nothing then', () => {
    const file = File.createSync(join(temporaryDirectory(), 'append.h5'), { connector });
    const x = file.createDataset('x', { dtype: 'int32', shape: [1, 3], maxShape: [3, 3], chunks: [1, 3] });
    expect(thrown(() => x.append([1, 2])).code).toBe('SHAPE');
    expect(thrown(() => x.append(new Int32Array(9))).message).toMatch(/maxShape|3/);
    expect(thrown(() => x.append(new Int32Array(9))).code).toBe('SHAPE');
    expect(thrown(() => x.append(['a', 'b', 'c'] as never)).code).toBe('DTYPE');
    expect(thrown(() => x.append(undefined as never)).code).toBe('DTYPE');
    expect(thrown(() => x.append([1, 2, 3], { cpoy: false } as never)).code).toBe('OPTION');
    expect(x.shape).toEqual([1, 3]);
    const scalar = file.createDataset('s', { dtype: 'int32', shape: [] });
    expect(thrown(() => scalar.append([1])).code).toBe('SHAPE');
    file.closeSync();
  });

  test('takes columns of a compound', () => {
    const path = join(temporaryDirectory(), 'append.h5');
    const file = File.createSync(path, { connector });
    const point = T.compound({ t: 'int64', v: 'float32' });
    const x = file.createDataset('x', { dtype: point, shape: [0], maxShape: [null], chunks: [8] });
    expect(x.append({ t: BigInt64Array.of(1n, 2n), v: [1.5, 2.5] }, { columns: true })).toBe(0);
    expect(x.append([{ t: 3n, v: 3.5 }])).toBe(2);
    expect(x.readSync()).toEqual([1, 2, 3].map((i) => ({ t: BigInt(i), v: i + 0.5 })));
    file.closeSync();
  });
});

describe('append to a log', () => {
  test('joins the rows to one block, and costs one commit', async () => {
    const file = await File.create(memoryStorage());
    const x = file.createDataset('x', { dtype: 'float64', shape: [0, 10], maxShape: [null, 10] });
    const row = new Float64Array(10);
    for (let i = 0; i < 1000; i++) x.append(row.fill(i));
    const commit = await file.flush();
    expect(commit.requests).toBe(1000);
    expect(commit.bytes).toBeLessThan(80_000 + 4000);
    expect(x.shape).toEqual([1000, 10]);
    expect((await x.read({ start: [999, 0] }))[9]).toBe(999);
  });

  test('shows fill between, never what was cut off before', () => {
    const storage = memoryStorage();
    const file = File.createSync(storage);
    const x = file.createDataset('x', { dtype: 'int32', shape: [4, 2], maxShape: [null, 4], fill: -1 });
    x.write(Int32Array.of(1, 2, 3, 4, 5, 6, 7, 8));
    file.flushSync();
    x.resize([1, 2]);
    x.resize([1, 4]);
    expect(x.append([9, 10, 11, 12])).toBe(1);
    expect(x.append([13, 14, 15, 16])).toBe(2);
    const values = [1, 2, -1, -1, 9, 10, 11, 12, 13, 14, 15, 16];
    expect([...x.readSync()]).toEqual(values);
    file.closeSync();
    const again = File.openSync(storage);
    expect([...again.dataset('x', 'int32').readSync()]).toEqual(values);
  });

  test('leaves the shape as it was when the buffer is full, and flushes before it grows', () => {
    const file = File.createSync(memoryStorage(), { bufferLimit: 100 });
    const x = file.createDataset('x', { dtype: 'float64', shape: [0], maxShape: [null] });
    x.append(new Float64Array(12));
    expect(thrown(() => x.append(new Float64Array(12))).code).toBe('BUFFER_FULL');
    expect(x.shape).toEqual([12]);
    const storage = memoryStorage();
    const flushing = File.createSync(storage, { bufferLimit: 100, onBufferFull: 'flush' });
    const y = flushing.createDataset('y', { dtype: 'float64', shape: [0], maxShape: [null] });
    for (let i = 0; i < 10; i++) y.append(new Float64Array(12).fill(i));
    flushing.flushSync();
    for (const { sequence } of flushing.commits().filter((commit) => commit.requests > 0)) {
      const then = File.openSync(storage, { asOf: sequence });
      const values = then.dataset('y', 'float64').readSync();
      expect([...values]).toEqual(Array.from({ length: values.length }, (_, i) => Math.floor(i / 12)));
    }
  });

  test('is forgotten with a discard, and comes back after a failed flush', async () => {
    const storage = memoryStorage();
    const file = await File.create(storage);
    const x = file.createDataset('x', { dtype: 'int8', shape: [0], maxShape: [null] });
    await file.flush();
    x.append([1, 2]);
    file.discard();
    const again = await File.open(storage);
    expect(again.dataset('x').shape).toEqual([0]);
  });

  test('costs at most 2 us a call', () => {
    const row = new Float64Array(10);
    const calls = 50_000;
    let least = Infinity;
    for (let round = 0; round < 8; round++) {
      const file = File.createSync(memoryStorage());
      const x = file.createDataset('x', { dtype: 'float64', shape: [0, 10], maxShape: [null, 10] });
      const began = process.cpuUsage();
      for (let i = 0; i < calls; i++) x.append(row);
      const { user, system } = process.cpuUsage(began);
      least = Math.min(least, (user + system) / calls);
      file.discard();
    }
    console.log(`append of one row of 10 float64: ${least.toFixed(2)} us`);
    expect(least).toBeLessThan(2);
  });
});
