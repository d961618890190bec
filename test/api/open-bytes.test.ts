import { runInNewContext } from 'node:vm';
import { File } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { expect, test } from 'vitest';
import { errorOf } from '../storage/scratch.ts';

function logBytes(): Uint8Array<ArrayBuffer> {
  const storage = memoryStorage();
  const file = File.createSync(storage);
  file.createDataset('x', { dtype: 'int16', shape: [3] }).write([1, 2, 3]);
  file.closeSync();
  return storage.bytes();
}

const bytes = logBytes();
const shared = new SharedArrayBuffer(bytes.length);
new Uint8Array(shared).set(bytes);
const within = new Uint8Array(bytes.length + 20);
within.set(bytes, 7);

const sources: Readonly<Record<string, ArrayBuffer | Uint8Array>> = {
  'an ArrayBuffer': bytes.buffer,
  'a Uint8Array': bytes,
  'a part of a buffer': within.subarray(7, 7 + bytes.length),
  'a Buffer': Buffer.from(bytes),
  'shared memory': new Uint8Array(shared),
  'an ArrayBuffer of another realm': runInNewContext('Uint8Array.from(bytes).buffer', { bytes: [...bytes] }),
};

test.each(Object.entries(sources))('%s is opened for reading', async (_, source) => {
  const file = await File.open(source);
  expect(file.mode).toBe('r');
  expect([...(await file.dataset('x', 'int16').read())]).toEqual([1, 2, 3]);
  expect((await errorOf(() => file.createGroup('g'))) as Error).toMatchObject({ code: 'READ_ONLY' });
  await file.close();
  const blocking = File.openSync(source);
  expect([...blocking.dataset('x', 'int16').readSync()]).toEqual([1, 2, 3]);
  expect(blocking.commits().length).toBe(2);
  blocking.closeSync();
});

test('bytes are not for writing: the error names memoryStorage, and the bytes stay as they were', async () => {
  const before = bytes.slice();
  const message = expect.stringContaining('memoryStorage');
  for (const source of [bytes, bytes.buffer]) {
    const error = { code: 'READ_ONLY', message };
    expect(await errorOf(() => File.open(source, { mode: 'r+' }))).toMatchObject(error);
    expect(await errorOf(() => File.openSync(source, { mode: 'r+' }))).toMatchObject(error);
  }
  expect(bytes).toEqual(before);
});

test('bytes that are no HDF5 give FORMAT', async () => {
  expect(await errorOf(() => File.open(new Uint8Array(4096)))).toMatchObject({ code: 'FORMAT' });
  expect(await errorOf(() => File.openSync(new ArrayBuffer(0)))).toMatchObject({ code: 'FORMAT' });
});

test('what is neither bytes nor a storage is refused with a list of what can be opened', async () => {
  const message = expect.stringContaining('ArrayBuffer');
  for (const wrong of [[1, 2, 3], {}, null, 5, new Float64Array(4)]) {
    expect(await errorOf(() => File.open(wrong as never))).toMatchObject({ code: 'OPTION', message });
  }
});

test('ordinary HDF5 in bytes is read', async () => {
  const storage = memoryStorage();
  const made = await File.create(storage, { connector: 'native' });
  made.createDataset('y', { dtype: 'float32', shape: [2] }).write([0.5, 1.5]);
  await made.close();
  const ordinary = storage.bytes();
  for (const options of [{}, { connector: 'native' } as const]) {
    const file = await File.open(ordinary, options);
    expect([...(await file.dataset('y', 'float32').read())]).toEqual([0.5, 1.5]);
    await file.close();
    const message = expect.stringContaining('memoryStorage');
    const error = await errorOf(() => File.open(ordinary, { ...options, mode: 'r+' }));
    expect(error).toMatchObject({ code: 'READ_ONLY', message });
  }
});
