import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { deflateSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { File } from '../../src/api/file.ts';
import { sessionOf } from '../../src/api/handle.ts';
import { T } from '../../src/dtype/construct.ts';
import { ENTRY } from '../../src/log/format/table.ts';
import { memoryStorage } from '../../src/storage/memory.ts';
import { dump } from '../../src/tools/dump/dump.ts';
import { stat } from '../../src/tools/stat/stat.ts';
import { verify } from '../../src/tools/verify/verify.ts';
import { temporaryDirectory } from '../temporary.ts';
import { allocations, resetAllocations, watchAllocations } from './allocations.ts';
import { pack } from './craft.ts';

// Logs in which one number claims more than the file holds. Nothing may be allocated for the claim.
watchAllocations();

const FIXTURES = new URL('../fixtures/original/', import.meta.url);
const fixture = (name: string): Uint8Array => new Uint8Array(readFileSync(new URL(name, FIXTURES)));
const open = (bytes: Uint8Array): File => File.openSync(memoryStorage(bytes));

/** What a call throws; it must not have asked for more than a small multiple of the file meanwhile. */
function refusal(size: number, work: () => unknown): unknown {
  resetAllocations();
  let thrown: unknown;
  try {
    work();
  } catch (error) {
    thrown = error;
  }
  expect(allocations.largest).toBeLessThan(Math.max(64 * 1024, 16 * size));
  return thrown;
}

const damaged = expect.objectContaining({ name: 'H5LogError', code: 'FORMAT', offset: expect.any(Number) });
const tooLarge = expect.objectContaining({ name: 'H5LogError', code: 'UNSUPPORTED', object: expect.any(String) });

/** The first table of the log: where it is, and its size. */
function tableOf(bytes: Uint8Array): { address: number; size: number } {
  const { log } = sessionOf(open(bytes));
  const item = log?.stores[0]?.committed.tables[0];
  if (!item) throw new Error('no table');
  return item;
}

/** Where the layout message of the first table holds the table's size. */
function sizeField(bytes: Uint8Array): number {
  const { address, size } = tableOf(bytes);
  const view = new DataView(bytes.buffer);
  for (let at = 0; at + 16 <= bytes.length; at++) {
    if (view.getBigUint64(at, true) === BigInt(address) && view.getBigUint64(at + 8, true) === BigInt(size))
      return at + 8;
  }
  throw new Error('no layout message');
}

describe('a table that claims more than the file holds', () => {
  for (const claim of [2n ** 33n, 2n ** 40n, 2n ** 52n]) {
    test(`${claim} bytes`, async () => {
      const bytes = fixture('memsel_1r.h5');
      new DataView(bytes.buffer).setBigUint64(sizeField(bytes), claim, true);
      const file = open(bytes);
      const name = [...file.keys()].find((key) => file.get(key)?.kind === 'dataset') ?? '';
      expect(refusal(bytes.length, () => file.dataset(name).readSync())).toEqual(damaged);
      for (const tool of [stat, dump]) await expect(tool(memoryStorage(bytes))).rejects.toEqual(damaged);
      expect((await verify(memoryStorage(bytes))).sound).toBe(false);
    });
  }
});

/** A log with a dataset `d`, of 64 elements unless said otherwise, whose only table is replaced by this one. */
function withTable(table: Uint8Array, options: { deflate?: boolean; data?: number } = {}): Uint8Array {
  const storage = memoryStorage();
  const file = File.createSync(storage, { publish: 'never', table: { merge: false } });
  const { deflate = false, data = 1000 } = options;
  const d = file.createDataset('d', { dtype: 'int8', shape: [64], filters: deflate ? [{ deflate: 1 }] : [] });
  const room = file.createDataset('room', { dtype: 'int8', shape: [2 ** 24] });
  d.write(new Int8Array(64), { start: [0], count: [64] });
  // A table that is long enough: one entry a block.
  for (let i = 0; i * 32 < table.length; i++) room.write(Int8Array.of(1), { start: [2 * i], count: [1] });
  room.write(new Int8Array(data), { start: [2 ** 20], count: [data] });
  file.closeSync();
  const bytes = storage.bytes();
  const { address, size } = tableOf(bytes);
  if (size < table.length) throw new Error(`room for ${size} bytes, the table has ${table.length}`);
  bytes.fill(0, address, address + size).set(table, address);
  new DataView(bytes.buffer).setBigUint64(address + 8, BigInt(table.length), true);
  return bytes;
}

/** A table of one section with these entries. */
const table = (...entries: Uint8Array[]): Uint8Array => {
  const body = pack(...entries);
  return pack([8, 1], [8, 16 + body.length], body);
};

/** An entry of dataset 0. */
function entry(flags: number, offset: number, size: number, body: Uint8Array): Uint8Array {
  return pack([4, 28 + body.length], [4, 0], [4, flags], [8, offset], [8, size], body);
}

const BOX = pack([8, 0], [8, 8]);

describe('an entry of a table that claims more than the file holds', () => {
  test('filtered data', () => {
    const bytes = withTable(table(entry(0, 200, 2 ** 33, BOX)), { deflate: true });
    expect(refusal(bytes.length, () => open(bytes).dataset('d').readSync())).toEqual(damaged);
  });

  test('plain data', () => {
    const bytes = withTable(table(entry(0, 200, 2 ** 40, pack([8, 0], [8, 2 ** 40]))));
    expect(refusal(bytes.length, () => open(bytes).dataset('d').readSync())).toEqual(damaged);
  });

  test('a compressed selection', () => {
    const stream = new Uint8Array(deflateSync(new Uint8Array(160)));
    const bytes = withTable(table(entry(ENTRY.multi | ENTRY.compressed, 200, 8, pack([4, 1_900_000], stream))));
    expect(refusal(bytes.length, () => open(bytes).dataset('d').readSync())).toEqual(damaged);
  });

  test('a selection that does not inflate', () => {
    const body = pack([4, 1], new Uint8Array(16).fill(7));
    const bytes = withTable(table(entry(ENTRY.multi | ENTRY.compressed, 200, 8, body)));
    expect(refusal(bytes.length, () => open(bytes).dataset('d').readSync())).toEqual(damaged);
  });

  test('a stream that would inflate to more', () => {
    const bytes = withTable(table(entry(0, 48, 60, pack([8, 0], [8, 2 ** 35]))), { deflate: true });
    expect(refusal(bytes.length, () => open(bytes).dataset('d').readSync())).toEqual(damaged);
  });

  test('a selection that references repeat', () => {
    const blocks = 2000;
    const body = pack([4, blocks], ...Array.from({ length: 2 * blocks }, (_, i) => [8, i < blocks ? 0 : 1] as const));
    const first = entry(ENTRY.multi, 200, blocks, body);
    const references = Array.from({ length: 3000 }, (_, i) =>
      entry(ENTRY.reference | ENTRY.multi, 200, blocks, pack([8, -(first.length + 36 * i)])),
    );
    const bytes = withTable(table(first, ...references));
    expect(refusal(4 * bytes.length, () => open(bytes).dataset('d').readSync())).toEqual(damaged);
  });
});

describe('a dataset larger than any memory', () => {
  const shape = [2 ** 20, 2 ** 22];
  const compound = T.compound({ x: 'float32', n: 'uint8' });
  const types = { int8: 'int8', float64: 'float64', text: T.string({ length: 3 }), compound } as const;

  for (const [name, dtype] of Object.entries(types)) {
    test(`of ${name}: the whole is refused, a part is read`, async () => {
      const storage = memoryStorage();
      const file = File.createSync(storage, { publish: 'never' });
      const dataset = file.createDataset('large', { dtype, shape });
      for (const options of [{}, { raw: true as const }]) {
        expect(refusal(0, () => dataset.readSync(undefined, options as { raw: true }))).toEqual(tooLarge);
        await expect(dataset.read(undefined, options as { raw: true })).rejects.toEqual(tooLarge);
      }
      const corner = { start: shape.map((size) => size - 2), count: [2, 2] };
      expect(dataset.readSync(corner)).toHaveLength(4);
      expect(await dataset.read(corner)).toHaveLength(4);
      file.closeSync();
      expect(refusal(0, () => open(storage.bytes()).dataset('large').readSync())).toEqual(tooLarge);
    });
  }

  test('texts that fit as bytes, but not as values', () => {
    const file = File.createSync(memoryStorage());
    const dataset = file.createDataset('texts', { dtype: T.string({ length: 1 }), shape: [2 ** 28] });
    expect(refusal(0, () => dataset.readSync())).toEqual(tooLarge);
  });

  test('an array in memory that cannot be', () => {
    const file = File.createSync(memoryStorage());
    const dataset = file.createDataset('small', { dtype: 'int8', shape: [2] });
    const memory = { shape: [2 ** 50], where: { start: [0], count: [2] } };
    expect(refusal(0, () => dataset.readSync(undefined, { memory }))).toEqual(tooLarge);
  });
});

test('a log in 2^31 - 1 subfiles, or in none', async () => {
  const name = 'subfile2_ndims_2r.h5';
  const folder = temporaryDirectory();
  for (const claim of [2 ** 31 - 1, 0, -1]) {
    const path = join(folder, `${claim}.h5`);
    cpSync(new URL(`${name}.subfiles`, FIXTURES), `${path}.subfiles`, { recursive: true });
    const bytes = fixture(name);
    const view = new DataView(bytes.buffer);
    const {
      datasets = 0,
      logs = 0,
      tables = 0,
      config = 0,
      subfiles = 0,
    } = sessionOf(open(bytes)).log?.main.counts ?? {};
    const counts = pack(...[datasets, logs, tables, config, subfiles].map((count) => [4, count] as const));
    const at = bytes.findIndex((_, i) => counts.every((byte, k) => bytes[i + k] === byte));
    view.setInt32(at + 16, claim, true);
    writeFileSync(path, bytes);
    expect(refusal(bytes.length, () => File.openSync(path))).toEqual(damaged);
    await expect(File.open(path)).rejects.toEqual(damaged);
  }
});
