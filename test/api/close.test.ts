import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type Dataset, File, isH5LogError, select } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';
import { faultyStorage } from '../storage/faulty.ts';
import { temporaryDirectory } from '../temporary.ts';

// Closing, buffers lent with copy: false, and buffers that are full: design.md section 4.

const at = (i: number): { start: number[]; count: number[] } => ({ start: [i], count: [1] });

function thrown(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    return isH5LogError(error) ? error.code : error;
  }
  return undefined;
}

const rejected = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => (isH5LogError(error) ? error.code : error),
  );

describe('close', () => {
  test('commits everything, cuts the file to size and gives the lock up', async () => {
    const path = join(temporaryDirectory(), 'a.h5');
    const file = await File.create(path);
    const d = file.createDataset('d', { dtype: 'int32', shape: [4] });
    d.write([1, 2, 3, 4]);
    expect(existsSync(`${path}.lock`)).toBe(true);
    await file.close();
    expect(existsSync(`${path}.lock`)).toBe(false);
    expect(file.closed).toBe(true);
    expect(statSync(path).size).toBeLessThan(10_000);
    const again = File.openSync(path, { mode: 'r+' });
    expect(again.dataset('d', 'int32').readSync()).toEqual(Int32Array.of(1, 2, 3, 4));
    again.closeSync();
  });

  test('objects can still be read; writing throws CLOSED', async () => {
    const storage = memoryStorage();
    for (const close of [(file: File) => file.close(), async (file: File) => file.closeSync()]) {
      const file = await File.create(storage);
      const d = file.createDataset('g/d', { dtype: 'int32', shape: [4], maxShape: [null] });
      d.write([1, 2, 3, 4]);
      d.attributes.set('a', 1);
      await close(file);
      expect(d.readSync()).toEqual(Int32Array.of(1, 2, 3, 4));
      expect(await d.read(at(2))).toEqual(Int32Array.of(3));
      expect(d.shape).toEqual([4]);
      expect(d.attributes.get('a')).toBe(1);
      expect([...file.keys()]).toEqual(['g']);
      expect(file.commits()).toHaveLength(2);
      expect(thrown(() => d.write([1], at(0)))).toBe('CLOSED');
      expect(thrown(() => d.writeMany([1], [0], [1]))).toBe('CLOSED');
      expect(thrown(() => d.resize([5]))).toBe('CLOSED');
      expect(thrown(() => d.attributes.set('a', 2))).toBe('CLOSED');
      expect(thrown(() => d.attributes.delete('a'))).toBe('CLOSED');
      expect(thrown(() => file.createGroup('x'))).toBe('CLOSED');
      expect(thrown(() => file.createDataset('x', { dtype: 'int8', shape: [] }))).toBe('CLOSED');
      expect(thrown(() => file.delete('g'))).toBe('CLOSED');
      expect(thrown(() => file.move('g', 'h'))).toBe('CLOSED');
      expect(thrown(() => file.flushSync())).toBe('CLOSED');
      expect(await rejected(file.flush())).toBe('CLOSED');
      await file.close();
      file.closeSync();
    }
  });

  test('of a file on disk: objects can still be read', async () => {
    const path = join(temporaryDirectory(), 'a.h5');
    const file = await File.create(path);
    const d = file.createDataset('d', { dtype: 'int32', shape: [4] });
    d.write([1, 2, 3, 4]);
    await file.close();
    expect(await d.read()).toEqual(Int32Array.of(1, 2, 3, 4));
    expect(d.readSync()).toEqual(Int32Array.of(1, 2, 3, 4));
    const reader = await File.open(path);
    const e = reader.dataset('d', 'int32');
    await reader.close();
    expect(await e.read()).toEqual(Int32Array.of(1, 2, 3, 4));
  });

  test('what is posted while it is under way is committed or refused, never lost', async () => {
    for (let seed = 0; seed < 10; seed++) {
      const disk = faultyStorage({ delays: true, seed });
      const file = await File.create(disk);
      const d = file.createDataset('d', { dtype: 'int32', shape: [100] });
      const closing = file.close();
      let posted = 0;
      for (; posted < 100 && !file.closed; posted++) {
        if (thrown(() => d.write([7], at(posted))) !== undefined) break;
        await new Promise((resolve) => setImmediate(resolve));
      }
      await closing;
      const reader = File.openSync(memoryStorage(disk.processImage()));
      const values = reader.dataset('d', 'int32').readSync();
      expect(values.filter((v) => v === 7)).toHaveLength(posted);
      reader.closeSync();
    }
  });

  test('closeSync while close is under way', async () => {
    const disk = faultyStorage({ delays: true, seed: 3 });
    const file = await File.create(disk);
    const d = file.createDataset('d', { dtype: 'int32', shape: [1] });
    d.write([5]);
    const closing = file.close();
    file.closeSync();
    expect(file.closed).toBe(true);
    await closing;
    const reader = File.openSync(memoryStorage(disk.processImage()));
    expect(reader.dataset('d', 'int32').readSync()).toEqual(Int32Array.of(5));
  });

  test('that fails leaves the file open, with everything pending', async () => {
    const disk = faultyStorage();
    const file = await File.create(disk);
    const d = file.createDataset('d', { dtype: 'int32', shape: [1] });
    d.write([5]);
    disk.fail({ op: 'write', at: disk.counts.write, landed: 'none' });
    expect(await rejected(file.close())).toBe('STORAGE');
    expect(file.closed).toBe(false);
    expect(file.pending.requests).toBe(1);
    disk.fail({ op: 'write', at: disk.counts.write, landed: 'none' });
    expect(thrown(() => file.closeSync())).toBe('STORAGE');
    d.write([6]);
    await file.close();
    const reader = File.openSync(memoryStorage(disk.processImage()));
    expect(reader.dataset('d', 'int32').readSync()).toEqual(Int32Array.of(6));
  });
});

/** Gives the memory away. */
function detach({ buffer }: Int32Array<ArrayBuffer>): void {
  structuredClone(buffer, { transfer: [buffer] });
}

describe('copy: false', () => {
  function lending(): {
    file: File;
    d: Dataset<'int32'>;
    data: Int32Array<ArrayBuffer>;
    disk: ReturnType<typeof faultyStorage>;
  } {
    const disk = faultyStorage({ delays: true, seed: 1 });
    const file = File.createSync(disk);
    const d = file.createDataset('d', { dtype: 'int32', shape: [4] });
    const data = Int32Array.of(1, 2, 3, 4);
    return { file, d, data, disk };
  }

  test('the buffer is read at the flush, and is free when it has resolved', async () => {
    const { file, d, data } = lending();
    d.write(data, undefined, { copy: false });
    expect(d.readSync()).toEqual(data);
    await file.flush();
    data.fill(9);
    expect(d.readSync()).toEqual(Int32Array.of(1, 2, 3, 4));
    expect(await d.read()).toEqual(Int32Array.of(1, 2, 3, 4));
    await file.close();
  });

  test('conversion, memory selection and filters happen at the flush', async () => {
    const { file } = lending();
    const z = file.createDataset('z', {
      dtype: 'int16',
      shape: [4],
      chunks: [3],
      filters: ['shuffle', { deflate: 1 }],
    });
    const data = new Float64Array(8);
    z.write(data, undefined, { copy: false, memory: { shape: [4, 2], where: { start: [0, 1], count: [4, 1] } } });
    const points = Float32Array.of(0, 0);
    file.createDataset('p', { dtype: 'uint8', shape: [4] }).write(points, select.points([[3], [1]]), { copy: false });
    data.set([0, 1, 0, 2, 0, 3, 0, 4]);
    points.set([30, 10]);
    file.flushSync();
    data.fill(9);
    points.fill(9);
    expect(z.readSync()).toEqual(Int16Array.of(1, 2, 3, 4));
    expect(file.dataset('p', 'uint8').readSync()).toEqual(Uint8Array.of(0, 10, 0, 30));
    await file.close();
  });

  test('does not count for the bufferLimit', () => {
    const file = File.createSync(memoryStorage(), { bufferLimit: 8 });
    const d = file.createDataset('d', { dtype: 'int32', shape: [4] });
    d.write(Int32Array.of(1, 2, 3, 4), undefined, { copy: false });
    d.writeMany(Int32Array.of(1, 2, 3, 4), [0, 2], [2], { copy: false });
    d.write(Int32Array.of(1), at(0));
    expect(file.pending).toEqual({ requests: 4, bytes: 36 });
    expect(thrown(() => d.write(Int32Array.of(1, 2), { start: [0], count: [2] }))).toBe('BUFFER_FULL');
    file.closeSync();
  });

  test('a buffer that is detached before the flush: STORAGE, naming the dataset, and nothing is committed', async () => {
    const { file, d, data, disk } = lending();
    const e = file.createDataset('e', { dtype: 'int32', shape: [1] });
    await file.flush();
    e.write([1]);
    d.write(data, undefined, { copy: false });
    detach(data);
    for (const flush of [async () => file.flushSync(), () => file.flush()]) {
      const error = await flush().then(
        () => undefined,
        (reason: unknown) => reason,
      );
      expect(isH5LogError(error, 'STORAGE')).toBe(true);
      expect((error as Error).message).toContain('/d');
    }
    expect(file.pending.requests).toBe(2);
    const reader = File.openSync(memoryStorage(disk.processImage()));
    expect(reader.sequence).toBe(1);
  });

  test('a buffer that is detached while it is written: STORAGE, and nothing is committed', async () => {
    const { file, d, data, disk } = lending();
    await file.flush();
    disk.pause();
    d.write(data, undefined, { copy: false });
    const flush = rejected(file.flush());
    detach(data);
    disk.resume();
    const result = await flush;
    const reader = File.openSync(memoryStorage(disk.processImage()));
    // Either it was read before, and is right, or nothing happened.
    if (result === undefined) expect(reader.dataset('d', 'int32').readSync()).toEqual(Int32Array.of(1, 2, 3, 4));
    else expect([result, reader.sequence]).toEqual(['STORAGE', 1]);
  });
});

describe('a full buffer', () => {
  test('BUFFER_FULL, nothing is lost; flush and retry', async () => {
    const file = await File.create(memoryStorage(), { bufferLimit: 16 });
    const d = file.createDataset('d', { dtype: 'int32', shape: [8] });
    d.write(Int32Array.of(1, 2), { start: [0], count: [2] });
    d.write([3, 4], { start: [2], count: [2] });
    const { pending } = file;
    expect(thrown(() => d.write(Int32Array.of(5), at(4)))).toBe('BUFFER_FULL');
    expect(thrown(() => d.write([5], at(4)))).toBe('BUFFER_FULL');
    expect(thrown(() => d.writeMany([5, 6], [4, 5], [1]))).toBe('BUFFER_FULL');
    expect(file.pending).toEqual(pending);
    await file.flush();
    d.write(Int32Array.of(5), at(4));
    expect(Array.from(d.readSync())).toEqual([1, 2, 3, 4, 5, 0, 0, 0]);
    await file.close();
  });

  test("onBufferFull: 'flush' makes room by itself, also for something larger than the buffer", async () => {
    const file = await File.create(memoryStorage(), { bufferLimit: 16, onBufferFull: 'flush' });
    const d = file.createDataset('d', { dtype: 'int32', shape: [8] });
    for (let i = 0; i < 8; i++) d.write(Int32Array.of(i), at(i));
    expect(file.pending).toEqual({ requests: 4, bytes: 16 });
    d.writeMany([1, 1], [0, 7], [1]);
    d.write([9, 9, 9, 9, 9], { start: [1], count: [5] });
    expect(file.pending.requests).toBe(1);
    d.write(Int32Array.of(8), at(7));
    expect(Array.from(d.readSync())).toEqual([1, 9, 9, 9, 9, 9, 6, 8]);
    await file.close();
  });

  test('what was refused takes no room', () => {
    const file = File.createSync(memoryStorage(), { bufferLimit: 8 });
    const d = file.createDataset('d', { dtype: 'int32', shape: [4] });
    for (let i = 0; i < 10; i++)
      expect(thrown(() => d.write(['x', 'y'] as unknown as number[], { start: [0], count: [2] }))).toBe('DTYPE');
    d.write([1, 2], { start: [0], count: [2] });
    file.closeSync();
  });
});

describe('a new file', () => {
  const truncations = (bytes: Uint8Array): unknown[] => {
    const disk = faultyStorage({ bytes });
    File.createSync(disk).closeSync();
    return disk.log.filter((operation) => operation.kind === 'truncate' && operation.size === 0);
  };

  test('is not made empty when it is: ext4 would write all of its data to the disk when it is closed', () => {
    expect(truncations(new Uint8Array(0))).toEqual([]);
  });

  test('is made empty when it is not', () => {
    expect(truncations(new Uint8Array(10_000).fill(7))).toHaveLength(1);
  });
});
