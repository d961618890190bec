import { type Dataset, File, isH5LogError, select } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';
import { repeats, seed } from '../../seed.ts';
import { type FaultyStorage, faultyStorage } from '../../storage/faulty.ts';

// The rules of design.md section 4, on a disk whose asynchronous operations are delayed and reordered.

const first = seed('sync meets async');
const seeds = Array.from({ length: repeats(50) }, (_, i) => first + i);

interface Scene {
  readonly disk: FaultyStorage;
  readonly file: File;
  readonly d: Dataset<'int32'>;
}

async function scene(seed: number, options: Parameters<typeof File.create>[1] = {}): Promise<Scene> {
  const disk = faultyStorage({ delays: true, seed });
  const file = await File.create(disk, options);
  const d = file.createDataset('d', { dtype: 'int32', shape: [8] });
  await file.flush();
  return { disk, file, d };
}

const at = (i: number): { start: number[]; count: number[] } => ({ start: [i], count: [1] });
const post = (d: Dataset<'int32'>, i: number, value: number): void => d.write(Int32Array.of(value), at(i));

/** What any other process reads now. */
function seen(disk: FaultyStorage): { values: number[]; sequence: number } {
  const file = File.openSync(memoryStorage(disk.processImage()));
  const values = Array.from(file.dataset('d', 'int32').readSync());
  const { sequence } = file;
  file.closeSync();
  return { values, sequence };
}

const code = (error: unknown): unknown => (isH5LogError(error) ? error.code : error);
const outcome = (promise: Promise<unknown>): Promise<unknown> => promise.then(() => 'done', code);

describe('a blocking call that meets an unfinished flush', () => {
  test('takes it over: it is committed, the promise resolves with that commit', async () => {
    for (const seed of seeds) {
      const { disk, file, d } = await scene(seed);
      disk.pause();
      post(d, 0, 1);
      const earlier = file.flush();
      post(d, 1, 2);
      const last = file.flushSync();
      // Both are there before anything asynchronous has gone on.
      expect(seen(disk)).toEqual({ values: [1, 2, 0, 0, 0, 0, 0, 0], sequence: last.sequence });
      disk.resume();
      const commit = await earlier;
      expect(commit.sequence).toBe(last.sequence - 1);
      expect(file.commits().map(({ sequence }) => sequence)).toEqual([0, 1, commit.sequence, last.sequence]);
      await file.close();
    }
  });

  test('writes the same bytes at the same offsets, so that stragglers do no harm', async () => {
    for (const seed of seeds) {
      const { disk, file, d } = await scene(seed);
      for (let i = 0; i < 8; i++) {
        post(d, i, i + 1);
        void file.flush();
      }
      const { sequence } = file.flushSync();
      const before = disk.processImage();
      expect(seen(disk)).toEqual({ values: [1, 2, 3, 4, 5, 6, 7, 8], sequence });
      // Whatever was still on its way arrives now.
      for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
      expect(Buffer.compare(disk.processImage(), before)).toBe(0);
      await file.close();
      expect(seen(disk).values).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    }
  });

  test('closeSync takes it over as well', async () => {
    const { disk, file, d } = await scene(first);
    disk.pause();
    post(d, 0, 1);
    const flush = file.flush();
    post(d, 1, 2);
    file.closeSync();
    expect(file.closed).toBe(true);
    expect(seen(disk).values.slice(0, 2)).toEqual([1, 2]);
    disk.resume();
    expect((await flush).sequence).toBe(2);
  });

  test('the taken-over flush fails: both throw STORAGE, everything is pending again, in order', async () => {
    for (const seed of seeds) {
      const { disk, file, d } = await scene(seed);
      disk.pause();
      post(d, 0, 1);
      const flush = outcome(file.flush());
      post(d, 0, 2);
      disk.fail({ op: 'write', at: disk.counts.write, times: 1, landed: 'none' });
      expect(() => file.flushSync()).toThrow(/injected/);
      disk.resume();
      expect(await flush).toBe('STORAGE');
      expect(file.pending.requests).toBe(2);
      expect(d.readSync()[0]).toBe(2);
      expect(seen(disk).sequence).toBe(1);
      await file.flush();
      expect(seen(disk).values[0]).toBe(2);
      await file.close();
    }
  });
});

describe('overlapping flushes', () => {
  test('finish in the order in which they were called', async () => {
    for (const seed of seeds) {
      const { file, d } = await scene(seed);
      const done: number[] = [];
      const flushes = Array.from({ length: 6 }, (_, i) => {
        post(d, 0, i);
        return file.flush().then(({ sequence }) => done.push(sequence));
      });
      await Promise.all(flushes);
      expect(done).toEqual([2, 3, 4, 5, 6, 7]);
      await file.close();
    }
  });

  test('when one fails, those behind it fail too, and all their posts are pending in order', async () => {
    for (const seed of seeds) {
      for (let n = 0; n < 5; n++) {
        const { disk, file, d } = await scene(seed);
        disk.fail({ op: 'write', at: disk.counts.write + n, code: 'ENOSPC', landed: 'none' });
        const flushes = [1, 2, 3].map((value) => {
          post(d, 0, value);
          post(d, value, value);
          return outcome(file.flush());
        });
        post(d, 4, 4);
        const results = await Promise.all(flushes);
        const failed = results.indexOf('STORAGE');
        expect(results).toEqual(results.map((_, i) => (failed >= 0 && i >= failed ? 'STORAGE' : 'done')));
        const values = [3, 1, 2, 3, 4, 0, 0, 0];
        expect(Array.from(d.readSync())).toEqual(values);
        expect(file.pending.requests).toBe(failed < 0 ? 1 : 1 + 2 * (3 - failed));
        const committed = failed < 0 ? 3 : failed;
        expect(seen(disk)).toEqual({
          values: values.map((v, i) => (i === 0 ? committed : i <= committed ? v : 0)),
          sequence: 1 + committed,
        });
        const { sequence } = await file.flush();
        expect(sequence).toBe(2 + committed);
        expect(seen(disk).values).toEqual(values);
        await file.close();
      }
    }
  });

  test('what was shrunk while a flush was under way that then failed', async () => {
    for (const seed of seeds) {
      for (const grown of [0, 6]) {
        const { disk, file } = await scene(seed);
        const e = file.createDataset('e', { dtype: 'int32', shape: [4, 5], maxShape: [null, null] });
        // Two blocks in one entry, whose coordinates are encoded by the dataset's shape.
        e.write([1, 2, 3, 4], { start: [0, 0], stride: [3, 4], count: [2, 2] });
        e.write([5], { start: [1, 4], count: [1, 1] });
        disk.fail({ op: 'write', at: disk.counts.write, landed: 'none' });
        const flush = outcome(file.flush());
        e.resize([2, 3]);
        if (grown > 0) e.resize([2, grown]);
        expect(await flush).toBe('STORAGE');
        const expected = [
          [1, 0, 0],
          [0, 0, 0],
        ].flatMap((row) => [...row, ...new Array<number>(Math.max(0, grown - 3)).fill(0)]);
        expect(Array.from(e.readSync())).toEqual(expected);
        await file.close();
        const reader = File.openSync(memoryStorage(disk.processImage()));
        expect(Array.from(reader.dataset('e', 'int32').readSync())).toEqual(expected);
      }
    }
  });

  test('names, shapes and attributes of a failed flush come with the next one', async () => {
    const { disk, file, d } = await scene(first);
    disk.fail({ op: 'write', at: disk.counts.write, landed: 'none' });
    d.attributes.set('units', 'K');
    const e = file.createDataset('e', { dtype: 'int8', shape: [1], maxShape: [null] });
    e.write([1]);
    const flush = outcome(file.flush());
    e.resize([2]);
    e.write([2], { start: [1], count: [1] });
    file.move('e', 'f');
    expect(await flush).toBe('STORAGE');
    await file.close();
    const reader = File.openSync(memoryStorage(disk.processImage()));
    expect([...reader.keys()]).toEqual(['d', 'f']);
    expect(reader.dataset('d').attributes.get('units')).toBe('K');
    expect(reader.dataset('f', 'int8').readSync()).toEqual(Int8Array.of(1, 2));
  });
});

describe('a read', () => {
  test('sees exactly what was posted before the call', async () => {
    for (const seed of seeds) {
      const { file, d } = await scene(seed);
      const reads: Promise<void>[] = [];
      for (let i = 1; i <= 10; i++) {
        post(d, 0, i);
        if (i % 3 === 0) void file.flush();
        if (i % 4 === 0) file.flushSync();
        reads.push(d.read(at(0)).then((values) => expect(values).toEqual(Int32Array.of(i))));
        expect(d.readSync(at(0))).toEqual(Int32Array.of(i));
      }
      await Promise.all(reads);
      await file.close();
    }
  });

  test('sees what is under way, and the index knows it afterwards', async () => {
    const { disk, file, d } = await scene(first);
    disk.pause();
    post(d, 3, 7);
    const flush = file.flush();
    expect(d.readSync(at(3))).toEqual(Int32Array.of(7));
    disk.resume();
    await flush;
    expect(d.readSync(at(3))).toEqual(Int32Array.of(7));
    expect(await d.read(at(3))).toEqual(Int32Array.of(7));
    await file.close();
  });

  test('of several boxes sees nothing of what is flushed between them', async () => {
    for (const seed of seeds) {
      const { file, d } = await scene(seed);
      d.write(Int32Array.of(1, 2, 3, 4, 5, 6, 7, 8));
      await file.flush();
      const read = d.read(select.hyperslab({ start: [0], stride: [2], count: [4] }));
      d.write(new Int32Array(8));
      file.flushSync();
      expect(await read).toEqual(Int32Array.of(1, 3, 5, 7));
      await file.close();
    }
  });

  test('that was aborted rejects with the reason', async () => {
    const { file, d } = await scene(first);
    post(d, 0, 1);
    await file.flush();
    const reason = new Error('no longer wanted');
    await expect(d.read(undefined, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    const control = new AbortController();
    const read = d.read(undefined, { signal: control.signal });
    control.abort(reason);
    await expect(read).rejects.toBe(reason);
    await file.close();
  });
});

describe('an empty flush', () => {
  test('commits nothing and returns the last commit', async () => {
    const { file, d } = await scene(first);
    post(d, 0, 1);
    const last = await file.flush();
    d.write(new Int32Array(0), { start: [0], count: [0] });
    expect(() => d.write(new Int32Array(3), at(0))).toThrow();
    expect(await file.flush()).toEqual(last);
    expect(file.flushSync()).toEqual(last);
    expect(file.sequence).toBe(last.sequence);
    await file.close();
    // The last one publishes.
    expect(file.commits()).toHaveLength(4);
  });

  test('waits for what is under way', async () => {
    const { disk, file, d } = await scene(first);
    post(d, 0, 1);
    const one = file.flush();
    const two = file.flush();
    expect(await two).toEqual(await one);
    expect(seen(disk).values[0]).toBe(1);
    await file.close();
  });
});
