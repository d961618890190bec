import { File, isH5LogError, select, T } from 'h5log';
import { blobStorage, memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';

const Sky = T.enum('uint8', { clear: 0, cloudy: 1, rain: 2 });

describe('enum values by name', () => {
  test('work in write, append, fill and attributes, also inside compounds', () => {
    const storage = memoryStorage();
    const file = File.createSync(storage);
    const sky = file.createDataset('sky', { dtype: Sky, shape: [3], maxShape: [null], fill: 'rain' });
    sky.write(['cloudy', 0], { start: [0], count: [2] });
    sky.append(['clear']);
    sky.write('cloudy', { start: [2], count: [1] });
    expect([...sky.readSync()]).toEqual([1, 0, 1, 0]);
    const other = file.createDataset('other', { dtype: Sky, shape: [2], fill: 'rain' });
    expect(other.fill).toBe(2);
    expect([...other.readSync()]).toEqual([2, 2]);
    const Report = T.compound({ sky: Sky, ok: T.bool });
    const reports = file.createDataset('reports', { dtype: Report, shape: [2], fill: { sky: 'rain', ok: true } });
    reports.write([{ sky: 'cloudy', ok: false }], { start: [1], count: [1] });
    expect(reports.readSync()).toEqual([
      { sky: 2, ok: true },
      { sky: 1, ok: false },
    ]);
    file.attributes.set('now', 'rain', { dtype: Sky });
    file.attributes.set('next', ['rain', 'clear'], { dtype: Sky });
    file.attributes.set('report', { sky: 'cloudy', ok: true }, { dtype: Report });
    file.closeSync();
    const again = File.openSync(storage);
    expect(again.attributes.get('now')).toBe(2);
    expect(again.attributes.get('next')).toEqual(Uint8Array.of(2, 0));
    expect(again.attributes.get('report')).toEqual({ sky: 1, ok: true });
    expect((again.dataset('sky').dtype as typeof Sky).members).toEqual({ clear: 0, cloudy: 1, rain: 2 });
  });

  test('that are no members are refused', () => {
    const file = File.createSync(memoryStorage());
    const sky = file.createDataset('sky', { dtype: Sky, shape: [1] });
    let error: unknown;
    try {
      // @ts-expect-error: the compiler knows the names.
      sky.write(['snow']);
    } catch (thrown) {
      error = thrown;
    }
    expect(isH5LogError(error, 'DTYPE')).toBe(true);
  });
});

test('readMany and readManySync fill an array that is given', async () => {
  const file = File.createSync(memoryStorage());
  const x = file.createDataset('x', { dtype: 'int32', shape: [4] });
  x.write([1, 2, 3, 4]);
  const into = new Float64Array(4);
  const read: Float64Array = await x.readMany([2, 0], [2], { into });
  expect(read).toBe(into);
  expect(into).toEqual(Float64Array.of(3, 4, 1, 2));
  expect(x.readManySync([3, 1], [1], { into: new Uint8Array(2) })).toEqual(Uint8Array.of(4, 2));
});

test('pads of strings have plainer names', () => {
  expect(T.string({ length: 3, pad: 'terminated' })).toEqual(T.string({ length: 3, pad: 'zero' }));
  expect(T.string({ length: 3, pad: 'padded' })).toEqual(T.string({ length: 3, pad: 'null' }));
  expect(T.string({ length: 3, pad: 'padded' })).toEqual(T.string({ length: 3 }));
});

describe('the boxes of a selection', () => {
  const boxes = (selection: { boxes(): Iterable<unknown> }): unknown[] => [...selection.boxes()];

  test('are disjoint and in row-major order', () => {
    expect(boxes(select.box([1, 2], [3, 4]))).toEqual([{ start: [1, 2], count: [3, 4] }]);
    expect(boxes(select.points([[3], [1], [3]]))).toEqual([
      { start: [1], count: [1] },
      { start: [3], count: [1] },
    ]);
    expect(boxes(select.box([0], [6]).minus(select.box([2], [2])))).toEqual([
      { start: [0], count: [2] },
      { start: [4], count: [2] },
    ]);
    expect(boxes(select.none())).toEqual([]);
    expect(boxes(select.box([], []))).toEqual([{ start: [], count: [] }]);
  });

  test('cover it: as many elements, none twice', () => {
    const selection = select.box([0, 0], [5, 5]).xor({ start: [1, 1], count: [2, 2], stride: [2, 2] });
    const seen = new Set<string>();
    for (const { start, count } of selection.boxes()) {
      for (let i = 0; i < (count[0] as number); i++)
        for (let j = 0; j < (count[1] as number); j++)
          seen.add(`${(start[0] as number) + i} ${(start[1] as number) + j}`);
    }
    expect(seen.size).toBe(selection.size);
    expect(seen.size).toBe(21);
  });

  test('that depend on a dataset are refused', () => {
    for (const open of [select.all(), select.hyperslab({ start: [1] })]) {
      let error: unknown;
      try {
        [...open.boxes()];
      } catch (thrown) {
        error = thrown;
      }
      expect(isH5LogError(error, 'SELECTION')).toBe(true);
    }
  });
});

describe('attributes of nested types', () => {
  const nested = T.array(T.array('int16', [2]), [3]);
  const value = [Int16Array.of(1, 2), Int16Array.of(3, 4), Int16Array.of(5, 6)];

  test.each([
    ['arrays of arrays', nested, value],
    ['sequences of arrays', T.vlen(T.array('int16', [2])), value],
    ['arrays of sequences', T.array(T.vlen('int16'), [3]), value],
    ['arrays of strings', T.array(T.string({ length: 2 }), [2]), ['a', 'b']],
    ['arrays of opaque bytes', T.array(T.opaque(2), [2]), [Uint8Array.of(1, 2), Uint8Array.of(3, 4)]],
    ['sequences of sequences', T.vlen(T.vlen('int8')), [Int8Array.of(1), Int8Array.of(2, 3)]],
  ])('%s: a scalar, and a list', (_, dtype, one) => {
    const storage = memoryStorage();
    const file = File.createSync(storage);
    file.attributes.set('one', one, { dtype });
    file.attributes.set('list', [one, one], { dtype });
    file.attributes.set('single', [one], { dtype });
    file.closeSync();
    const { attributes } = File.openSync(storage);
    expect(attributes.describe('one')?.shape).toEqual([]);
    expect(attributes.get('one')).toEqual(one);
    expect(attributes.describe('list')?.shape).toEqual([2]);
    expect(attributes.get('list')).toEqual([one, one]);
    expect(attributes.describe('single')?.shape).toEqual([1]);
    expect(attributes.get('single')).toEqual([one]);
  });

  test('elements of datasets', () => {
    const file = File.createSync(memoryStorage());
    const x = file.createDataset('x', { dtype: nested, shape: [2] });
    x.write(value as never, { start: [1], count: [1] });
    expect(x.readSync({ start: [1] })).toEqual([value]);
    x.write([value, value] as never);
    expect(x.readSync()).toEqual([value, value]);
  });
});

describe('what is no signal, no Blob and no bytes', () => {
  const code = 'OPTION';

  test('is refused', async () => {
    const file = File.createSync(memoryStorage());
    const x = file.createDataset('x', { dtype: 'int8', shape: [1] });
    const wrong = { signal: 5 as unknown as AbortSignal };
    await expect(x.read(undefined, wrong)).rejects.toMatchObject({ code });
    await expect(x.readMany([0], [1], wrong)).rejects.toMatchObject({ code });
    await expect(file.load('/', wrong)).rejects.toMatchObject({ code });
    await expect(x.pieces(undefined, wrong).next()).rejects.toMatchObject({ code });
    await expect(file.watch(wrong).next()).rejects.toMatchObject({ code });
    for (const given of [undefined, {}, 'x'] as unknown as Blob[])
      expect(() => blobStorage(given)).toThrow(expect.objectContaining({ code }));
    for (const given of [null, {}, 5] as unknown as Uint8Array[])
      expect(() => memoryStorage(given)).toThrow(expect.objectContaining({ code }));
    file.closeSync();
  });

  test('an ArrayBuffer is bytes', () => {
    const storage = memoryStorage();
    File.createSync(storage).closeSync();
    expect([...File.openSync(memoryStorage(storage.bytes().buffer)).keys()]).toEqual([]);
  });
});

describe('bigints of attributes', () => {
  test('are refused if no integer of 64 bits holds them all', () => {
    const { attributes } = File.createSync(memoryStorage());
    for (const value of [[-1n, 2n ** 63n], 2n ** 70n, 2n ** 64n, -(2n ** 63n) - 1n, [0n, 2n ** 64n]])
      expect(() => attributes.set('a', value)).toThrow(expect.objectContaining({ code: 'DTYPE' }));
    expect(attributes.has('a')).toBe(false);
    for (const value of [2n ** 64n - 1n, -(2n ** 63n)]) {
      attributes.set('a', value);
      expect(attributes.get('a')).toBe(value);
    }
  });
});
