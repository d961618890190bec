import { expect, test } from 'vitest';
import { blobStorage } from '../../src/storage/blob.ts';
import { storageConformance } from './conformance.ts';
import { errorOf, expectBytes, pattern } from './scratch.ts';

storageConformance('a Blob', (bytes) => blobStorage(new Blob([bytes.slice()])), { readOnly: true });

test('has no blocking half', () => {
  expect(blobStorage(new Blob([])).blocking).toBeUndefined();
});

test('large reads come in pieces and whole', async () => {
  const bytes = pattern(40 * 2 ** 20);
  const into = new Uint8Array(bytes.length);
  expect(await blobStorage(new Blob([bytes])).read(into, 3)).toBe(bytes.length - 3);
  expectBytes(into.subarray(0, -3), bytes.subarray(3));
});

test('small reads of the same place slice once', async () => {
  const blob = new Blob([pattern(300_000)]);
  let slices = 0;
  const slice = blob.slice.bind(blob);
  blob.slice = (...args) => {
    slices++;
    return slice(...args);
  };
  const storage = blobStorage(blob);
  for (let i = 0; i < 100; i++) await storage.read(new Uint8Array(16), i * 600);
  expect(slices).toBe(1);
});

test('a Blob that cannot be read gives STORAGE with the cause', async () => {
  const blob = new Blob([pattern(10)]);
  const cause = new Error('NotReadableError');
  blob.slice = () => {
    throw cause;
  };
  expect(await errorOf(() => blobStorage(blob).read(new Uint8Array(4), 2))).toMatchObject({ code: 'STORAGE', cause });
});
