import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { File } from 'h5log';
import { describe, expect, test } from 'vitest';
import { memoryStorage } from '../../../src/storage/memory.ts';
import { sealFile } from '../../../src/tools/seal/seal.ts';
import { count } from '../../counts.ts';
import { h5dump, oracle } from '../../oracles.ts';
import { full, seed } from '../../seed.ts';
import { faultyStorage, variants } from '../../storage/faulty.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { counting, seenByH5py } from './sealed.ts';

const directory = temporaryDirectory();
const names = ['/tiles', '/edges', '/pieces', '/copied', '/_name/packed'];

/** A log with a dataset for every way. */
async function makeLog(): Promise<Uint8Array> {
  const storage = memoryStorage();
  const file = await File.create(storage);
  const tiles = file.createDataset('tiles', { dtype: 'int32', shape: [20, 20] });
  const edges = file.createDataset('edges', { dtype: 'int32', shape: [15, 20], chunks: [10, 10] });
  const pieces = file.createDataset('pieces', { dtype: 'int32', shape: [50] });
  const copied = file.createDataset('copied', { dtype: 'int16', shape: [9001], fill: 1 });
  const packed = file.createDataset('_name/packed', {
    dtype: 'int32',
    shape: [20],
    chunks: [10],
    filters: [{ deflate: 1 }],
  });
  for (let k = 0; k < 4; k++) {
    const start = [(k >> 1) * 10, (k & 1) * 10];
    tiles.write(counting(new Int32Array(100), k * 100), { start, count: [10, 10] });
    const rows = k < 2 ? 10 : 5;
    edges.write(counting(new Int32Array(rows * 10), k), { start, count: [rows, 10] });
    pieces.write(counting(new Int32Array(21), k), { start: [k * 9], count: [21] });
    await file.flush();
  }
  for (let i = 0; i < 9001; i += 2) copied.write(Int16Array.of(i % 1000), { start: [i], count: [1] });
  packed.write(counting(new Int32Array(20)));
  await file.close();
  const bytes = new Uint8Array(storage.blocking.size());
  storage.blocking.read(bytes, 0);
  return bytes;
}

/** 'log' or 'ordinary'; throws unless it is one of them as a whole. */
function stateOf(image: Uint8Array, expected: string): 'log' | 'ordinary' {
  const file = File.openSync(memoryStorage(image));
  if (file.connector === 'log') {
    expect(contentsOf(file)).toBe(expected);
    return 'log';
  }
  for (const name of names) expect(file.dataset(name).attributes.has('_ID')).toBe(false);
  expect([...file.keys()].filter((name) => name !== '_pieces')).toEqual([
    'tiles',
    'edges',
    'pieces',
    'copied',
    '_name',
  ]);
  return 'ordinary';
}

const contentsOf = (file: File): string =>
  names
    .map((name) =>
      createHash('sha256')
        .update(file.dataset(name).readSync(undefined, { raw: true }))
        .digest('hex'),
    )
    .join();

function sealOn(disk: ReturnType<typeof faultyStorage>): Promise<unknown> {
  return sealFile(disk, {});
}

describe('a seal that is interrupted', () => {
  const chosen = seed('interrupted seal');

  test('by a crash after every operation leaves the log or the ordinary file', { timeout: 300_000 }, async () => {
    const given = await makeLog();
    const expected = contentsOf(File.openSync(memoryStorage(given)));
    const disk = faultyStorage({ bytes: given, seed: chosen });
    await sealOn(disk);
    const final = disk.image('none');
    const found = { log: 0, ordinary: 0 };
    const known = new Map<string, 'log' | 'ordinary'>();
    const look = (image: Uint8Array): 'log' | 'ordinary' => {
      const key = createHash('sha1').update(image).digest('base64');
      const state = known.get(key) ?? stateOf(image, expected);
      // Nothing of it may be missing, neither what was moved nor what points to it.
      if (state === 'ordinary') expect(Buffer.compare(image.subarray(0, final.length), final)).toBe(0);
      known.set(key, state);
      found[state]++;
      return state;
    };
    for (let k = 0; k <= disk.log.length; k++) {
      for (const variant of variants(full ? 40 : 12, chosen + 100 * k)) look(disk.imageAfter(k, variant));
      look(disk.processImageAfter(k));
      const next = disk.log[k];
      const isFlip = next?.kind === 'write' && next.offset === 0;
      if (!isFlip) look(disk.processImageAfter(k, chosen + k));
    }
    expect(look(disk.imageAfter(0, 'none'))).toBe('log');
    expect(look(disk.image('none'))).toBe('ordinary');
    expect(found.log).toBeGreaterThan(20);
    expect(found.ordinary).toBeGreaterThan(2);
    if (oracle('python') !== undefined && oracle('h5dump') !== undefined) {
      const path = join(directory, 'sealed.h5');
      writeFileSync(path, disk.image('none'));
      const seen = seenByH5py(path, names);
      expect(names.map((name) => seen[name]?.sha).join()).toBe(expected);
      h5dump(path);
    }
    count('interrupted seal', { operations: disk.log.length, ...found, 'different images': known.size });
  });

  test.each(['blocking', 'asynchronous'])(
    'by a failure of any operation is the log, and can be done again (%s)',
    async (way) => {
      const given = await makeLog();
      const expected = contentsOf(File.openSync(memoryStorage(given)));
      let failures = 0;
      for (let at = 0; ; at++) {
        const disk = faultyStorage({
          bytes: given,
          seed: chosen,
          asyncOnly: way === 'asynchronous',
          faults: [{ op: 'any', at, code: 'ENOSPC' }],
        });
        const outcome = await sealOn(disk).then(
          () => null,
          (error: unknown) => error,
        );
        const state = stateOf(disk.processImage(), expected);
        if (outcome === null) {
          // Only what cuts the file to size at the end may fail unnoticed.
          expect(state).toBe('ordinary');
          if (disk.injected === 0) break;
          continue;
        }
        failures++;
        expect(outcome).toMatchObject({ code: 'STORAGE' });
        expect(state).toBe('log');
        disk.heal();
        await sealOn(disk);
        expect(stateOf(disk.processImage(), expected)).toBe('ordinary');
      }
      expect(failures).toBeGreaterThan(10);
      count(`failed seal, ${way}`, { failures });
    },
  );
});
