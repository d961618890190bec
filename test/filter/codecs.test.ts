import { brotliCompressSync, brotliDecompressSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import { applyFilters } from '../../src/filter/apply.ts';
import {
  type FilterCodec,
  type FilterInfo,
  type FilterStep,
  PendingBytes,
  problemOfEncoding,
  registerFilter,
  unfilter,
  withoutWaiting,
} from '../../src/filter/pipeline.ts';
import { noise, seed } from '../seed.ts';

const ID = 40_000;
const data = Uint8Array.from({ length: 400 }, (_, i) => i >> 4);
const whole = { size: 400, elementSize: 4, shape: [10, 10] };
const step: FilterStep = { id: ID, name: 'brotli', flags: 1, values: [7, 8] };
const brotli: FilterCodec = {
  name: 'brotli',
  decode: (bytes) => brotliDecompressSync(bytes),
  encode: (bytes) => brotliCompressSync(bytes),
};
const slow: FilterCodec = {
  name: 'slow brotli',
  decode: async (bytes) => brotliDecompressSync(bytes),
  encode: async (bytes) => brotliCompressSync(bytes),
};
const code = (expected: string) => expect.objectContaining({ name: 'H5LogError', code: expected });

const everywhere = () => (globalThis as unknown as Record<symbol, Map<number, unknown>>)[Symbol.for('h5log.filters')];
afterEach(() => everywhere()?.clear());

/** What a call with an asynchronous codec gives in the end. */
function settled(bytes: Uint8Array | PendingBytes): Promise<Uint8Array> {
  expect(bytes).toBeInstanceOf(PendingBytes);
  return (bytes as PendingBytes).promise;
}

describe('a registered filter', () => {
  test('is called with its parameters and the chunk, among other filters', () => {
    const infos: FilterInfo[] = [];
    registerFilter(ID, {
      ...brotli,
      decode: (bytes, info) => {
        infos.push(info);
        return brotliDecompressSync(bytes);
      },
    });
    const steps = [{ id: 2, flags: 0, values: [4] }, step, { id: 3, flags: 0, values: [] }];
    const stored = withoutWaiting(applyFilters(data, steps, whole));
    expect(stored.length).toBeLessThan(data.length);
    expect(Buffer.compare(withoutWaiting(unfilter(stored, steps, 0, whole)), data)).toBe(0);
    expect(infos).toEqual([{ parameters: [7, 8], size: 400, elementSize: 4, shape: [10, 10] }]);
  });

  test('is known to every copy of h5log in the process', () => {
    registerFilter(ID, brotli);
    expect(everywhere()?.get(ID)).toBe(brotli);
    everywhere()?.set(ID + 1, brotli);
    expect(withoutWaiting(unfilter(brotliCompressSync(data), [{ ...step, id: ID + 1 }], 0, whole))).toHaveLength(400);
  });

  test('takes the place of one of ours, and a codec of the file that of both', () => {
    const never = (): never => {
      throw new Error('not this one');
    };
    registerFilter(1, brotli);
    const deflated = { id: 1, flags: 0, values: [6] };
    expect(withoutWaiting(unfilter(brotliCompressSync(data), [deflated], 0, whole))).toHaveLength(400);
    registerFilter(ID, { name: 'wrong', decode: never });
    expect(withoutWaiting(unfilter(brotliCompressSync(data), [step], 0, whole, { [ID]: brotli }))).toHaveLength(400);
  });

  test('is skipped where the mask says so', () => {
    expect(withoutWaiting(unfilter(data, [step], 1, whole))).toBe(data);
  });

  test('that is optional and does not help is left out, and its bit set', () => {
    registerFilter(ID, brotli);
    const random = noise(400, seed('incompressible'));
    const skipped = { mask: 0 };
    const steps = [{ id: 3, flags: 0, values: [] }, step];
    const stored = withoutWaiting(applyFilters(random, steps, whole, undefined, skipped));
    expect(skipped.mask).toBe(2);
    expect(withoutWaiting(unfilter(stored, steps, skipped.mask, whole))).toEqual(random);
    // Without a place for the mask it is applied whatever comes of it.
    expect(withoutWaiting(applyFilters(random, steps, whole)).length).toBeGreaterThan(stored.length);
  });

  test('may be asynchronous, which blocking calls cannot be', async () => {
    registerFilter(ID, slow);
    const steps = [{ id: 2, flags: 0, values: [4] }, step, { id: 3, flags: 0, values: [] }];
    const stored = await settled(applyFilters(data, steps, whole));
    expect(await settled(unfilter(stored, steps, 0, whole))).toEqual(data);
    expect(() => withoutWaiting(unfilter(stored, steps, 0, whole))).toThrow(code('UNSUPPORTED'));
    expect(() => withoutWaiting(unfilter(stored, steps, 0, whole))).toThrow(
      'filter 40000 (slow brotli) is asynchronous, and neither blocking calls nor',
    );
  });

  test('that fails is FORMAT, with the cause; one of no use is UNSUPPORTED', async () => {
    const failure = new Error('bad magic number');
    const failing = (): never => {
      throw failure;
    };
    const call = (codec: FilterCodec) => unfilter(data, [step], 0, whole, { [ID]: codec });
    expect(() => call({ name: 'x', decode: failing })).toThrow(code('FORMAT'));
    expect(() => call({ name: 'x', decode: failing })).toThrow('filter 40000 (x): bad magic number');
    await expect(settled(call({ name: 'x', decode: async () => failing() }))).rejects.toMatchObject({
      code: 'FORMAT',
      cause: failure,
    });
    const nothing = { name: 'x', decode: () => 5 } as unknown as FilterCodec;
    expect(() => call(nothing)).toThrow('filter 40000 (x): decode() returned no Uint8Array');
    expect(() => call({ name: 'x', decode: (bytes) => bytes.subarray(1) })).toThrow('a chunk of 399 bytes where 400');
  });

  test('can be loaded when it is first needed: once, and by asynchronous calls', async () => {
    let loads = 0;
    registerFilter(ID, async () => {
      loads++;
      return brotli;
    });
    const stored = brotliCompressSync(data);
    expect(problemOfEncoding([step])).toBe(null);
    expect(() => withoutWaiting(unfilter(stored, [step], 0, whole))).toThrow('filter 40000 (brotli) is not loaded yet');
    expect(await settled(unfilter(stored, [step], 0, whole))).toHaveLength(400);
    expect(withoutWaiting(unfilter(stored, [step], 0, whole))).toHaveLength(400);
    expect(loads).toBe(1);
  });

  test('that cannot be loaded says why, and is tried again', async () => {
    let loads = 0;
    registerFilter(ID, async () => {
      loads++;
      if (loads === 1) throw new Error('no network');
      return brotli;
    });
    const call = () => settled(unfilter(brotliCompressSync(data), [step], 0, whole));
    await expect(call()).rejects.toThrow('filter 40000 could not be loaded: no network');
    await expect(call()).resolves.toHaveLength(400);
    registerFilter(ID, async () => ({}) as FilterCodec);
    await expect(call()).rejects.toMatchObject({ code: 'OPTION' });
  });

  test('needs a number and two functions', () => {
    for (const id of [0, -1, 65_536, 1.5, '7', undefined])
      expect(() => registerFilter(id as number, brotli)).toThrow(code('OPTION'));
    for (const codec of [null, undefined, {}, { name: 'x' }, { name: 'x', decode: 1 }, { ...brotli, encode: 1 }])
      expect(() => registerFilter(ID, codec as FilterCodec)).toThrow(code('OPTION'));
  });
});

describe('a filter that nobody registered', () => {
  test('is UNSUPPORTED, by number and name, with what to do', () => {
    expect(() => unfilter(data, [step], 0, whole)).toThrow(code('UNSUPPORTED'));
    expect(() => unfilter(data, [step], 0, whole)).toThrow(
      'filter 40000 (brotli) is not known; register a codec for it with registerFilter(40000, codec)',
    );
    expect(() => applyFilters(data, [step], whole)).toThrow('filter 40000 (brotli) is not known');
    expect(problemOfEncoding([step])).toContain('is not known');
  });

  test('can be read but not written without an encoder', () => {
    registerFilter(ID, { name: 'brotli', decode: brotli.decode });
    expect(problemOfEncoding([step])).toContain('filter 40000 (brotli) cannot be written');
    expect(() => applyFilters(data, [step], whole)).toThrow('its codec has no encode()');
    expect(problemOfEncoding([{ id: 4, name: 'szip', flags: 1, values: [] }])).toContain('filter 4 (szip) cannot be');
    expect(problemOfEncoding([1, 2, 3, 5, 6, 32_000].map((id) => ({ id, flags: 0, values: [] })))).toBe(null);
  });
});
