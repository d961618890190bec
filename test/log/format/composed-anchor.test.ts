import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { type AttributeValue, type Dataset, File, type Group } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { verify } from 'h5log/tools';
import { describe, expect, test } from 'vitest';
import { oracle, withOracle } from '../../oracles.ts';
import { faultyStorage } from '../../storage/faulty.ts';
import { temporaryDirectory } from '../../temporary.ts';

const ATTRIBUTES = {
  units: 'kg/m2/s',
  empty: '',
  scale: 2.5,
  nan: Number.NaN,
  shorts: Int16Array.of(-1, 2, 3),
  longs: BigInt64Array.of(-1n, 2n ** 60n),
  _FillValue: 1e20,
} as const satisfies Record<string, AttributeValue>;

function make(group: Group, name: string, maxShape?: readonly (number | null)[]): Dataset<'float64'> {
  return group.createDataset(name, {
    dtype: 'float64',
    shape: [2, 3],
    fill: -1,
    attributes: ATTRIBUTES,
    ...(maxShape && { maxShape }),
  });
}

function check(dataset: Dataset, attributes: Record<string, AttributeValue> = ATTRIBUTES): void {
  expect([...dataset.attributes.keys()].sort()).toEqual(Object.keys(attributes).sort());
  for (const [name, value] of Object.entries(attributes)) expect(dataset.attributes.get(name)).toEqual(value);
}

describe('a new dataset with attributes', () => {
  test.each([false, true])('reads them before and after a commit, asked for before it: %s', (isAsked) => {
    const storage = memoryStorage();
    const file = File.createSync(storage, { publish: 'never' });
    const fixed = make(file, 'fixed');
    const growing = make(file, 'g/growing', [null, 3]);
    if (isAsked) for (const dataset of [fixed, growing]) check(dataset);
    file.flushSync();
    for (const dataset of [fixed, growing]) check(dataset);
    growing.resize([4, 3]);
    fixed.attributes.set('units', 'K');
    fixed.attributes.delete('scale');
    file.flushSync();
    const { scale: _, ...left } = ATTRIBUTES;
    check(growing);
    check(fixed, { ...left, units: 'K' });
    file.closeSync();
    const again = File.openSync(storage.bytes());
    check(again.dataset('g/growing'));
    check(again.dataset('fixed'), { ...left, units: 'K' });
    expect(again.dataset('g/growing').shape).toEqual([4, 3]);
    expect(again.dataset('fixed').fill).toBe(-1);
    again.closeSync();
    const first = File.openSync(storage.bytes(), { asOf: 1 });
    check(first.dataset('g/growing'));
    check(first.dataset('fixed'));
    first.closeSync();
  });

  test('keeps its texts when a commit fails, whoever asked for them in between', () => {
    for (const isAsked of [false, true]) {
      const disk = faultyStorage({ faults: [{ op: 'write', at: 3, code: 'ENOSPC' }] });
      const file = File.createSync(disk, { publish: 'never' });
      const dataset = make(file, 'x');
      let failed = 0;
      for (let tries = 0; tries < 4; tries++) {
        try {
          file.flushSync();
          break;
        } catch {
          failed++;
          if (isAsked) check(dataset);
        }
      }
      expect(failed).toBe(1);
      check(dataset);
      file.closeSync();
      const again = File.openSync(disk.processImageAfter(disk.log.length));
      check(again.dataset('x'));
      again.closeSync();
    }
  });

  test('can be removed and made again, before and after a commit', async () => {
    const storage = memoryStorage();
    const file = File.createSync(storage, { publish: 'never' });
    make(file, 'x').write(new Float64Array(6).fill(1));
    file.delete('x');
    make(file, 'x').write(new Float64Array(6).fill(2));
    file.flushSync();
    file.delete('x');
    file.flushSync();
    make(file, 'x');
    file.closeSync();
    const again = File.openSync(storage.bytes());
    check(again.dataset('x'));
    expect(again.dataset('x').readSync()).toEqual(new Float64Array(6).fill(-1));
    again.closeSync();
    expect((await verify(memoryStorage(storage.bytes()))).sound).toBe(true);
  });

  test('refuses an attribute that cannot be stored, and is not made', () => {
    const file = File.createSync(memoryStorage());
    const attributes = { good: 1, bad: 'with \0 in it' };
    expect(() => file.createDataset('x', { dtype: 'int8', shape: [], attributes })).toThrow(/attribute bad of \/x/);
    expect(file.has('x')).toBe(false);
    file.closeSync();
  });

  test('may have more attributes than the first chunk of its header holds', () => {
    const storage = memoryStorage();
    const file = File.createSync(storage, { publish: 'never' });
    const many = Object.fromEntries(Array.from({ length: 80 }, (_, i) => [`a${i}`, i % 2 ? `text ${i}` : i]));
    file.createDataset('x', { dtype: 'int8', shape: [4], attributes: many });
    file.closeSync();
    const again = File.openSync(storage.bytes());
    check(again.dataset('x'), many);
    again.closeSync();
  });
});

withOracle('python', 'h5py', () => {
  test('reads the attributes', () => {
    const path = join(temporaryDirectory(), 'attributes.h5');
    const file = File.createSync(path, { publish: 'never' });
    make(file, 'fixed');
    make(file, 'growing', [null, 3]);
    file.closeSync();
    const script = `import h5py, sys
with h5py.File(sys.argv[1]) as f:
  for name in 'fixed', 'growing':
    a = f[name].attrs
    print(a['units'], repr(a['empty']), a['scale'], a['nan'], list(a['shorts']), list(a['longs']), a['__FillValue'], list(a['_dims']))`;
    const line = "kg/m2/s '' 2.5 nan [-1, 2, 3] [-1, 1152921504606846976] 1e+20 [2, 3]";
    const printed = execFileSync(oracle('python') as string, ['-c', script, path], { encoding: 'utf8' });
    expect(printed.trim().split('\n')).toEqual([line, line]);
  });
});
