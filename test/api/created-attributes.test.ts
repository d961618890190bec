import { join } from 'node:path';
import { File, isH5LogError } from 'h5log';
import { describe, expect, test } from 'vitest';
import { temporaryDirectory } from '../temporary.ts';

describe.each(['log', 'native'] as const)('attributes given to createDataset (%s)', (connector) => {
  test('are there after the file was closed', () => {
    const path = join(temporaryDirectory(), 'a.h5');
    const file = File.createSync(path, { connector });
    const attributes = { units: 'K', range: Float32Array.of(1, 2), names: ['a', 'b'], count: 3 };
    const made = file.createDataset('g/d', { dtype: 'float64', shape: [2], attributes });
    expect(made.attributes.get('units')).toBe('K');
    made.write(Float64Array.of(1, 2));
    file.closeSync();
    const again = File.openSync(path);
    const dataset = again.dataset('g/d');
    expect(Object.fromEntries(dataset.attributes)).toEqual(attributes);
    expect(dataset.readSync()).toEqual(Float64Array.of(1, 2));
    again.closeSync();
  });
});

describe('attributes given to createDataset', () => {
  test('make no dataset in a log if one of them cannot be set', () => {
    const path = join(temporaryDirectory(), 'b.h5');
    const file = File.createSync(path);
    const attributes = { units: 'K', bad: Symbol('no value') as unknown as string };
    let error: unknown;
    try {
      file.createDataset('d', { dtype: 'float64', shape: [2], attributes });
    } catch (thrown) {
      error = thrown;
    }
    expect(isH5LogError(error, 'DTYPE')).toBe(true);
    expect(file.has('d')).toBe(false);
    const second = file.createDataset('d', { dtype: 'int8', shape: [1], attributes: { units: 'm' } });
    second.write(Int8Array.of(5));
    file.closeSync();
    const again = File.openSync(path);
    expect([...again.keys()]).toEqual(['d']);
    expect(again.dataset('d').attributes.get('units')).toBe('m');
    expect(again.dataset('d').readSync()).toEqual(Int8Array.of(5));
    again.closeSync();
  });
});
