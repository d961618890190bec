import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import h5wasm, { type Dataset } from 'h5wasm/node';
import { beforeAll, describe, expect, test } from 'vitest';
import { findPeers } from '../../bench/peers/all.ts';
import { rowFlushes } from '../../bench/peers/flushes.ts';
import { h5py } from '../../bench/peers/h5py.ts';
import { wasm } from '../../bench/peers/h5wasm.ts';
import type { Peer, PeerTask } from '../../bench/peers/peer.ts';
import { plain } from '../../bench/peers/plain.ts';
import { type RowsFile, type RowsProgram, setRow, smallRows } from '../../bench/peers/small.ts';
import { streamBlocks } from '../../bench/peers/stream.ts';
import { zarrita } from '../../bench/peers/zarrita.ts';
import { pythonSync, withOracle } from '../oracles.ts';
import { temporaryDirectory } from '../temporary.ts';

const ROWS = 100;
const FLUSHES = 10;
const BLOCK = 2 ** 17;

const SMALL = ['write', 'read', 'random'].flatMap((part) =>
  ['ordered', 'shuffled'].map((order) => `small/${order}/${part}`),
);

/** Runs a workload, and gives the ids of what it measured. */
async function run(peer: Peer, workload: string, folder: string, scale: number): Promise<string[]> {
  mkdirSync(folder, { recursive: true });
  const figures = await peer.workloads[workload]?.({ folder, scale, full: true });
  for (const { seconds, part } of figures ?? []) {
    expect(seconds).toBeGreaterThan(0);
    expect(part).toBe(1);
  }
  return (figures ?? []).map(({ id }) => id).sort();
}

/** All three, each in a folder of its own, of one stream block. */
async function runAll(peer: Peer): Promise<string> {
  const folder = temporaryDirectory();
  expect(await run(peer, 'small', join(folder, 'small'), ROWS / 1_000_000)).toEqual([...SMALL].sort());
  expect(await run(peer, 'stream', join(folder, 'stream'), 2 / 1024)).toEqual(['stream/write']);
  if (peer.workloads.flushes)
    expect(await run(peer, 'flushes', join(folder, 'flushes'), FLUSHES / 100_000)).toEqual(['flushes/total']);
  return folder;
}

function floats(path: string): Float64Array {
  return new Float64Array(Uint8Array.from(readFileSync(path)).buffer);
}

const rows = (): Float64Array => {
  const values = new Float64Array(ROWS * 3);
  for (let r = 0; r < ROWS; r++) setRow(values, r, r * 3);
  return unsigned(values);
};
/** Row 0 has a zero with a sign in some programs, and one without in others. */
const unsigned = (values: Float64Array): Float64Array => values.map((value) => value + 0);
const appended = (): Float64Array => Float64Array.from({ length: FLUSHES * 128 }, (_, i) => Math.floor(i / 128));
const second = (): Float64Array => Float64Array.from({ length: BLOCK }, (_, k) => (k === 0 ? 1 : BLOCK + k * 0.25));

describe('what peers write', () => {
  beforeAll(() => h5wasm.ready);

  test('plain fs: the values at their places, and nothing else', async () => {
    const folder = await runAll(plain);
    expect(unsigned(floats(join(folder, 'small/plain')))).toEqual(rows());
    expect(floats(join(folder, 'stream/plain')).subarray(BLOCK)).toEqual(second());
    expect(floats(join(folder, 'flushes/plain'))).toEqual(appended());
  });

  test('zarrita: chunks of plain bytes', async () => {
    const folder = await runAll(zarrita);
    expect(unsigned(floats(join(folder, 'small/small.zarr/c/0/0')))).toEqual(rows());
    expect(floats(join(folder, 'stream/stream.zarr/c/1'))).toEqual(second());
    const { shape, zarr_format } = JSON.parse(readFileSync(join(folder, 'flushes/flushes.zarr/zarr.json'), 'utf8'));
    expect([zarr_format, shape]).toEqual([3, [FLUSHES, 128]]);
    expect(floats(join(folder, 'flushes/flushes.zarr/c/7/0'))).toEqual(appended().subarray(7 * 128, 8 * 128));
  });

  withOracle('python', 'h5wasm and h5py', () => {
    test('h5wasm: what h5py reads', async () => {
      const folder = await runAll(wasm);
      const read = (path: string): Float64Array => {
        const script =
          "import sys, h5py, json; print(json.dumps((h5py.File(sys.argv[1], 'r')['x'][()] + 0.0).ravel().tolist()))";
        return Float64Array.from(JSON.parse(pythonSync(script, [join(folder, path)])) as number[]);
      };
      expect(read('small/wasm.h5')).toEqual(rows());
      expect(read('stream/wasm.h5').subarray(BLOCK)).toEqual(second());
      expect(read('flushes/wasm.h5')).toEqual(appended());
    });

    test.each(['contiguous', 'chunked'] as const)('h5py %s: what h5wasm reads', async (layout) => {
      const folder = await runAll(h5py(layout));
      const read = (path: string): { values: Float64Array; chunks: unknown } => {
        const file = new h5wasm.File(join(folder, path, `${layout}.h5`), 'r');
        const dataset = file.get('x') as Dataset;
        const found = { values: dataset.value as Float64Array, chunks: dataset.metadata.chunks };
        file.close();
        return found;
      };
      expect(unsigned(read('small').values)).toEqual(rows());
      expect(read('small').chunks === null).toBe(layout === 'contiguous');
      expect(read('stream').values.subarray(BLOCK)).toEqual(second());
      if (layout === 'chunked') expect(read('flushes').values).toEqual(appended());
    });
  });

  test('all of them are found where they are installed', async () => {
    const names = (await findPeers()).map(({ name }) => name);
    expect(names).toEqual(['plain fs', 'h5py contiguous', 'h5py chunked', 'h5wasm', 'zarrita']);
  });
});

/** A program with rows in memory; `spoil` changes what it has when it is closed. */
class MemoryRows implements RowsFile {
  static readonly stored = new Map<string, Float64Array>();
  readonly #values: Float64Array;
  readonly #spoil: (values: Float64Array) => void;

  constructor(path: string, count: number, spoil: (values: Float64Array) => void) {
    this.#values = MemoryRows.stored.get(path) ?? new Float64Array(count * 3);
    this.#spoil = spoil;
    MemoryRows.stored.set(path, this.#values);
  }

  writeEach(order: Uint32Array): void {
    for (const r of order) setRow(this.#values, r, r * 3);
    const until = performance.now() + 20;
    while (performance.now() < until);
  }

  writeAll(values: Float64Array): void {
    this.#values.set(values);
  }

  readAll(): Float64Array {
    return this.#values;
  }

  readEach(starts: Uint32Array): Float64Array[] {
    return Array.from(starts, (start) => this.#values.subarray(start * 3, start * 3 + 30));
  }

  close(): void {
    this.#spoil(this.#values);
  }
}

function inMemory(spoil: (values: Float64Array) => void = () => {}): RowsProgram {
  return {
    create: (path, count) => {
      MemoryRows.stored.delete(path);
      return new MemoryRows(path, count, spoil);
    },
    open: (path, count) => new MemoryRows(path, count, spoil),
    most: 10,
  };
}

describe('a peer', () => {
  const task = (full: boolean): PeerTask => ({ folder: temporaryDirectory(), scale: ROWS / 1_000_000, full });

  test('that is slow does a part, and its time is scaled up', async () => {
    const figures = await smallRows(inMemory(), 'part', task(false));
    const writes = figures.filter(({ id }) => id.endsWith('/write'));
    // 20 ms for a tenth.
    for (const { seconds, part } of writes) {
      expect(part).toBe(0.1);
      expect(seconds).toBeGreaterThanOrEqual(0.2);
    }
    // What is read is all of it.
    for (const { id, part } of figures) if (!id.endsWith('/write')) expect(part).toBe(1);
  });

  test('does all of it when it is told to', async () => {
    for (const { part } of await smallRows(inMemory(), 'full', task(true))) expect(part).toBe(1);
  });

  test('that writes a wrong row has no time', async () => {
    const spoil = (values: Float64Array): void => {
      values[4 * 3 + 1] = 99;
    };
    await expect(smallRows(inMemory(spoil), 'spoilt', task(true))).rejects.toThrow(
      'element 13 is 99, but 4.5 was written',
    );
  });

  test('that writes a wrong block has no time', async () => {
    const read = (): Float64Array => new Float64Array(BLOCK);
    await expect(streamBlocks({ write: (_, __, block) => void block(0), read }, '', task(true))).rejects.toThrow(
      'block 0 of 1 is not what was written',
    );
  });

  test('that loses a row has no time', async () => {
    const program = { write: () => {}, read: () => new Float64Array(128 * (FLUSHES - 1)), most: 10 };
    const lost = rowFlushes(program, 'x', { ...task(true), scale: FLUSHES / 100_000 });
    await expect(lost).rejects.toThrow('a row of 9, but one of 10 was written');
  });
});
