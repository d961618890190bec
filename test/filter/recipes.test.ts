import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import * as zlib from 'node:zlib';
import { File } from 'h5log';
import { runThreads } from 'h5log/threads';
import { replay } from 'h5log/tools';
import { beforeAll, describe, expect, test } from 'vitest';
import { root } from '../../scripts/root.ts';
import { applyFilters } from '../../src/filter/apply.ts';
import { type FilterStep, PendingBytes, unfilter } from '../../src/filter/pipeline.ts';
import { h5log } from '../cli/command.ts';
import { pythonSync, withOracle } from '../oracles.ts';
import { temporaryDirectory } from '../temporary.ts';

const folder = join(root, 'examples/filters');
const names = readdirSync(folder);
const data = Uint8Array.from({ length: 20_000 }, (_, i) => (i * i) >> 8);
const whole = { size: data.length, elementSize: 4, shape: [5000] };
const step = (id: number, values: number[] = []): FilterStep => ({ id, flags: 1, values });

const settled = (bytes: Uint8Array | PendingBytes): Promise<Uint8Array> =>
  bytes instanceof PendingBytes ? bytes.promise : Promise.resolve(bytes);

beforeAll(async () => {
  for (const name of names) await import(pathToFileURL(join(folder, name)).href);
});

describe('a recipe', () => {
  test.each(names)('%s is the one in docs/filters.md', (name) => {
    const page = readFileSync(join(root, 'docs/filters.md'), 'utf8');
    expect(page).toContain(`\`\`\`js\n${readFileSync(join(folder, name), 'utf8')}\`\`\`\n`);
  });

  test.each([
    ['zstd', 32_015, [3]],
    ['blosc', 32_001, [2, 2, 4, 20_000]],
    ['lz4', 32_004, []],
    ['bitshuffle', 32_008, [0, 4, 4, 0, 0]],
  ])('for %s gives back what it compressed, behind shuffle', async (_name, id, values) => {
    const steps = [step(2, [4]), step(id, values)];
    const stored = await settled(applyFilters(data, steps, whole));
    if (id !== 32_008) expect(stored.length).toBeLessThan(data.length);
    expect(Buffer.compare(await settled(unfilter(stored, steps, 0, whole)), data)).toBe(0);
  });

  test.each([
    ['lz4', 32_004],
    ['zstd', 32_015],
    ['blosc', 32_001],
  ])('for %s calls damaged data FORMAT', async (_name, id) => {
    const stored = (await settled(applyFilters(data, [step(id)], whole))).slice();
    stored.fill(0x5a, 0, 40);
    await expect((async () => settled(unfilter(stored, [step(id)], 0, whole)))()).rejects.toMatchObject({
      code: 'FORMAT',
    });
  });

  test('for lz4 reads several blocks and one that is stored as it is', async () => {
    const blocks = await Promise.all([
      settled(applyFilters(data.subarray(0, 12_000), [step(32_004)], { ...whole, size: 12_000 })),
      data.subarray(12_000),
    ]);
    const [first, second] = blocks as [Uint8Array, Uint8Array];
    const head = Buffer.alloc(12);
    head.writeBigUInt64BE(20_000n);
    head.writeUInt32BE(12_000, 8);
    const size = Buffer.alloc(4);
    size.writeUInt32BE(second.length);
    const stored = Buffer.concat([head, first.subarray(12), size, second]);
    expect(Buffer.compare(await settled(unfilter(stored, [step(32_004)], 0, whole)), data)).toBe(0);
  });

  // Node 22.15 and later.
  const { zstdCompressSync } = zlib as { zstdCompressSync?: (bytes: Uint8Array) => Uint8Array };
  test.runIf(zstdCompressSync)('for zstd works in blocking calls where Node has it', () => {
    const stored = zstdCompressSync?.(data) as Uint8Array;
    expect(unfilter(stored, [step(32_015)], 0, whole)).toHaveLength(data.length);
  });
});

withOracle('python', 'bitshuffle, as numpy does it', () => {
  test('puts bit b of element i into row b', () => {
    // Two blocks of 2048 elements of 4 bytes and the rest, which has 904.
    const script = `
import numpy, sys
data = numpy.frombuffer(bytes(((i * i) >> 8) & 255 for i in range(20000)), 'u1').reshape(5000, 4)
for first in range(0, 5000, 2048):
    part = data[first:first + 2048]
    bits = numpy.unpackbits(part, axis=1, bitorder='little')
    sys.stdout.write(numpy.packbits(bits.T.reshape(-1), bitorder='little').tobytes().hex())
`;
    const steps = [step(32_008, [0, 4, 4, 0, 0])];
    const stored = Buffer.from(pythonSync(script), 'hex');
    expect(Buffer.compare(unfilter(stored, steps, 0, whole) as Uint8Array, data)).toBe(0);
    expect(Buffer.compare(applyFilters(data, steps, whole) as Uint8Array, stored)).toBe(0);
  });
});

describe('a registered filter', () => {
  const filters = [{ id: 32_008, parameters: [0, 4, 4, 0, 0] }, { deflate: 3 }] as const;
  const module = join(folder, 'bitshuffle.mjs');
  const path = join(temporaryDirectory(), 'log.h5');
  const values = Int32Array.from({ length: 5000 }, (_, i) => i * 3);

  test('is used by datasets of a log, and shown', async () => {
    const file = await File.create(path);
    const dataset = file.createDataset('x', { dtype: 'int32', shape: [5000], chunks: [1500], filters });
    dataset.write(values);
    await file.close();
    const read = await File.open(path);
    expect(read.dataset('x').filters).toEqual(filters);
    expect(await read.dataset('x').read()).toEqual(values);
    expect(read.dataset('x').readSync({ start: [1499], count: [3] })).toEqual(values.slice(1499, 1502));
    await read.close();
  });

  test('must be known, and able to write', async () => {
    const file = await File.create(join(temporaryDirectory(), 'new.h5'), {
      codecs: { 40001: { name: 'half', decode: (bytes) => bytes } },
    });
    const create = (id: number) => () => file.createDataset('x', { dtype: 'int8', shape: [1], filters: [{ id }] });
    expect(create(40_000)).toThrow('/x: filter 40000 is not known; register a codec for it');
    expect(create(40_001)).toThrow(expect.objectContaining({ code: 'UNSUPPORTED' }));
    expect(create(6)).toThrow('filter 6 is for chunks of one size, not for a log');
    expect(create(0)).toThrow(expect.objectContaining({ code: 'OPTION' }));
    expect(file.has('x')).toBe(false);
    await file.close();
  });

  test('of the file wins, and is given to the codec with the block', async () => {
    const path = join(temporaryDirectory(), 'own.h5');
    const shapes: unknown[] = [];
    const flip = (bytes: Uint8Array) => bytes.map((byte) => byte ^ 255);
    const codecs = {
      32008: {
        name: 'flip',
        encode: flip,
        decode: (bytes: Uint8Array, info: { shape: readonly number[] }) => {
          shapes.push(info.shape);
          return flip(bytes);
        },
      },
    };
    const file = await File.create(path, { codecs });
    const dataset = file.createDataset('x', {
      dtype: 'uint8',
      shape: [4, 6],
      chunks: [3, 6],
      filters: [{ id: 32_008 }],
    });
    dataset.write(new Uint8Array(24).fill(7));
    await file.flush();
    expect(await dataset.read()).toEqual(new Uint8Array(24).fill(7));
    expect(shapes).toEqual([
      [3, 6],
      [1, 6],
    ]);
    await file.close();
    await expect(File.open(path, { codecs: [] as never })).rejects.toMatchObject({ code: 'OPTION' });
  });

  test('reaches the threads of runThreads and of replay by filterModules', { timeout: 60_000 }, async () => {
    const rank = new URL('./filter-rank.ts', import.meta.url);
    await expect(runThreads(2, rank, path)).rejects.toThrow(/filter 32008.* is not known/);
    const sums = await runThreads(2, rank, path, { filterModules: [module, pathToFileURL(module)] });
    const sum = values.reduce((a, b) => a + b, 0);
    expect(sums).toEqual([sum, sum]);
    const output = join(temporaryDirectory(), 'ordinary.h5');
    expect(await replay(path, output, { threads: 2, filterModules: [module] })).toMatchObject({ datasets: 1 });
    await expect(runThreads(2, rank, path, { filterModules: ['./none.mjs'] })).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
    await expect(runThreads(2, rank, path, { filterModules: 'x' as never })).rejects.toMatchObject({ code: 'OPTION' });
  });

  test('reaches commands by --filter', { timeout: 120_000 }, async () => {
    const without = await h5log('dump', '-d', '/x', path);
    expect(without).toMatchObject({ code: 1 });
    expect(without.stdout + without.stderr).toMatch(/filter 32008.* is not known/);
    const shown = await h5log('dump', '-d', '/x', '--filter', module, path);
    expect(shown).toMatchObject({ code: 0, stderr: '' });
    expect(shown.stdout).toContain('14997');
    const ordinary = join(temporaryDirectory(), 'ordinary.h5');
    expect(await h5log('replay', '-j', '2', '--filter', module, path, ordinary)).toMatchObject({ code: 0 });
    expect((await h5log('ls', '-v', path)).stdout).toContain('filter 32008 0 4 4 0 0, deflate 3');
    expect((await h5log('ls', '--filter', './none.mjs', path)).stderr).toContain('NOT_FOUND: --filter ./none.mjs: ');
  });
});
