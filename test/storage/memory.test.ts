import { expect, test } from 'vitest';
import { memoryStorage } from '../../src/storage/memory.ts';
import { storageConformance } from './conformance.ts';
import { errorOf, pattern } from './scratch.ts';

storageConformance('memory', (bytes) => memoryStorage(bytes), { staysOpen: true });

test('the bytes given are never changed, the bytes got are a copy', () => {
  const given = pattern(10);
  const storage = memoryStorage(given);
  storage.blocking.write([Uint8Array.of(255)], 0);
  expect(given).toEqual(pattern(10));
  const got = storage.bytes();
  got.fill(0);
  expect([...storage.bytes()]).toEqual([255, ...pattern(10).subarray(1)]);
});

test('a size no machine has gives STORAGE and changes nothing', async () => {
  const storage = memoryStorage(pattern(10));
  expect(await errorOf(() => storage.truncate(2 ** 52))).toMatchObject({ code: 'STORAGE' });
  expect(storage.bytes()).toEqual(pattern(10));
});
