import { describe, expect, test } from 'vitest';
import { File } from '../../src/index.ts';
import { memoryStorage } from '../../src/storage/memory.ts';
import { count } from '../counts.ts';
import { full, seed } from '../seed.ts';
import { type Fault, faultyStorage, type Operation } from '../storage/faulty.ts';
import { commitIn } from './images.ts';
import { applyCommit, commitOf } from './states.ts';

const COMMITS = 4;
const chosen = seed('a failure at every operation');

interface Way {
  readonly name: string;
  flush(file: File): Promise<unknown>;
}
const ways: readonly Way[] = [
  { name: 'flushSync', flush: async (file) => file.flushSync() },
  { name: 'flush', flush: (file) => file.flush() },
];

/** Commits with one fault at operation `at`; gives whether it was met. Whatever failed is tried again and succeeds. */
async function commitsWith(fault: Fault, way: Way, durability: 'power' | 'process'): Promise<boolean> {
  const disk = faultyStorage({ seed: chosen + fault.at, bytes: new Uint8Array(0) });
  const file = File.createSync(disk, { durability });
  disk.fail({ ...fault, at: fault.at + disk.counts[fault.op] });
  for (let n = 1; n <= COMMITS; n++) {
    applyCommit(file, n);
    const before = disk.log.length;
    try {
      await way.flush(file);
    } catch (error) {
      expect(error).toMatchObject({ code: 'STORAGE' });
      // A disk that also refuses to have the old superblock back may keep the new one.
      expect((fault.times ?? 1) === 1 ? [n - 1] : [n - 1, n]).toContain(commitIn(disk.processImage()));
      // What was posted is still there to be seen, and to be flushed with whatever else.
      expect(commitOf(file)).toBe(n);
      file.attributes.set('more', n);
      disk.heal();
      const failed = disk.log.slice(before);
      await way.flush(file);
      expectPlace(failed, disk.log.slice(before + failed.length));
      expect(file.attributes.get('more')).toBe(n);
      file.attributes.delete('more');
      await way.flush(file);
    }
    if (disk.injected === 0) continue;
    expect(commitIn(disk.processImage())).toBe(n);
    if (durability === 'power') expect(commitIn(disk.image('none'))).toBe(n);
  }
  try {
    await file.close();
  } catch (error) {
    expect(error).toMatchObject({ code: 'STORAGE' });
    expect(commitIn(disk.processImage())).toBe(COMMITS);
    disk.heal();
    await file.close();
  }
  expect(commitIn(disk.processImage())).toBe(COMMITS);
  return disk.injected > 0;
}

/**
 * The bytes of the failed commit are written again: in the same place, or behind it if a sync failed or the superblock may have
 * been written, because those bytes may be in an unknown state, or seen by a reader.
 */
function expectPlace(failed: readonly Operation[], again: readonly Operation[]): void {
  const isFixed = failed.some((op) => (op.kind === 'sync' && op.failed) || (op.kind === 'write' && op.offset === 0));
  if (isFixed) {
    expectElsewhere(failed, again);
    return;
  }
  const first = (log: readonly Operation[]) =>
    log.find((op) => op.kind === 'write' && op.offset > 0) as { offset: number } | undefined;
  const before = first(failed);
  if (before) expect(first(again)?.offset).toBe(before.offset);
}

/** The bytes of the failed commit were written again behind where they were, and none of the old places was only synced. */
function expectElsewhere(failed: readonly Operation[], again: readonly Operation[]): void {
  const writes = (log: readonly Operation[]) => log.flatMap((op) => (op.kind === 'write' && op.offset > 0 ? [op] : []));
  const ends = writes(failed).map(({ offset, length }) => offset + length);
  const starts = writes(again).map(({ offset }) => offset);
  expect(starts.length).toBeGreaterThan(0);
  expect(Math.min(...starts)).toBeGreaterThanOrEqual(Math.max(0, ...ends));
  const sync = again.findIndex(({ kind }) => kind === 'sync');
  if (sync >= 0) expect(again.slice(0, sync).some((op) => op.kind === 'write' && op.offset > 0)).toBe(true);
}

describe('a failure at every operation', () => {
  const kinds: readonly Omit<Fault, 'at'>[] = [
    { op: 'any', code: 'EIO', landed: 'prefix' },
    { op: 'any', code: 'EIO', landed: 'torn' },
    { op: 'any', code: 'ENOSPC', landed: 'none' },
    { op: 'any', code: 'EIO', landed: 2 ** 30 }, // all of it, and then the error
    { op: 'write', code: 'ENOSPC', landed: 'torn', times: 2 }, // the flip, and putting the superblock back
    { op: 'write', code: 'EIO', landed: 2 ** 30, times: 2 },
    { op: 'write', code: 'EIO', landed: 'torn', times: 3 },
    { op: 'sync', code: 'EIO' },
    { op: 'truncate', code: 'ENOSPC' },
  ];
  test.each(['power', 'process'] as const)(
    '%s: the flush throws STORAGE, everything stays pending, the next one succeeds',
    async (durability) => {
      let failures = 0;
      for (const kind of kinds) {
        for (const way of ways) {
          for (let at = full ? 0 : chosen % 2; ; at += full ? 1 : 2) {
            try {
              if (!(await commitsWith({ ...kind, at }, way, durability))) break;
            } catch (error) {
              throw new Error(`${way.name}, ${JSON.stringify({ ...kind, at })}`, { cause: error });
            }
            failures++;
          }
        }
      }
      count(`failing operations, ${durability}`, { failures });
      expect(failures).toBeGreaterThan((durability === 'power' ? 200 : 100) / (full ? 1 : 2));
    },
  );

  test('while a file is made or opened: STORAGE, and the storage can be used again', async () => {
    let failures = 0;
    for (const open of [false, true]) {
      for (let at = 0; ; at++) {
        const disk = faultyStorage({ bytes: open ? whole() : new Uint8Array(0), faults: [{ op: 'any', at }] });
        const start = (): File =>
          open ? File.openSync(disk, { mode: 'r+' }) : File.createSync(disk, { durability: 'power' });
        let file: File;
        try {
          file = start();
        } catch (error) {
          expect(error).toMatchObject({ code: 'STORAGE' });
          failures++;
          disk.heal();
          file = start();
        }
        if (disk.injected === 0) break;
        if (!open) applyCommit(file, 1);
        file.closeSync();
        expect(commitIn(disk.processImage())).toBe(open ? 3 : 1);
      }
    }
    expect(failures).toBeGreaterThan(5);
  });
});

function whole(): Uint8Array {
  const storage = memoryStorage();
  const file = File.createSync(storage);
  for (let n = 1; n <= 3; n++) {
    applyCommit(file, n);
    file.flushSync();
  }
  file.closeSync();
  return storage.bytes();
}
