import { expect, test } from 'vitest';
import { File } from '../../src/index.ts';
import { memoryStorage } from '../../src/storage/memory.ts';
import { applyCommit, commitOf } from './states.ts';

test('the states that crash tests look for are those that commits without a crash leave', () => {
  const storage = memoryStorage();
  const file = File.createSync(storage);
  expect(commitOf(file)).toBe(0);
  for (let n = 1; n <= 120; n++) {
    applyCommit(file, n);
    expect(commitOf(file)).toBe(n);
    file.flushSync();
    expect(commitOf(File.openSync(memoryStorage(storage.bytes())))).toBe(n);
  }
});
