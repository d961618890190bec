import { join } from 'node:path';
import { inspect } from 'node:util';
import { File, type H5LogError, isH5LogError, select, T } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';
import { temporaryDirectory } from '../temporary.ts';

describe('console.log prints one line', () => {
  test('for everything that users hold', () => {
    const path = join(temporaryDirectory(), 'run.h5');
    const file = File.createSync(path);
    const t = file.createDataset('atm/T', { dtype: 'float64', shape: [3, 72, 866], attributes: { units: 'K', z: 1 } });
    const s = file.createDataset('s', { dtype: T.compound({ a: 'int8' }), shape: [] });
    const lines = (): string[] => [t, s, file, file.group('atm'), t.attributes, s.attributes].map((x) => inspect(x));
    const same = [
      'Dataset /atm/T float64 [3, 72, 866] of run.h5',
      'Dataset /s compound {a: int8} scalar of run.h5',
      'File run.h5 (r+, 2 members, commit 0)',
      'Group /atm (1 member) of run.h5',
      'Attributes of /atm/T: units, z',
      'Attributes of /s: none',
    ];
    expect(lines()).toEqual(same);
    expect([t, s, file, file.group('atm'), t.attributes, s.attributes].map(String)).toEqual(same);
    expect(inspect({ t })).toBe('{ t: Dataset /atm/T float64 [3, 72, 866] of run.h5 }');
    expect(Object.prototype.toString.call(t)).toBe('[object Dataset]');
    const deno = (t as unknown as Record<symbol, () => string>)[Symbol.for('Deno.customInspect')];
    expect(deno?.call(t)).toBe(same[0]);
    file.delete('s');
    expect(inspect(s)).toMatch(/^Dataset \/s /);
    file.closeSync();
    expect(inspect(file)).toBe('File run.h5 (closed)');
  });

  test('for selections', () => {
    expect(inspect(select.box([0, 0], [2, 3]))).toBe('Selection of 6 elements in 2 dimensions');
    expect(inspect(select.points([[1]]))).toBe('Selection of 1 element in 1 dimension');
    expect(inspect(select.all())).toBe('Selection that depends on the dataset');
    expect(inspect(select.none())).toBe('Selection of 0 elements');
  });

  test('for objects that are gone', () => {
    const storage = memoryStorage();
    const writer = File.createSync(storage);
    writer.createDataset('x', { dtype: 'int8', shape: [1] });
    writer.flushSync();
    const reader = File.openSync(storage);
    const x = reader.dataset('x');
    writer.delete('x');
    writer.flushSync();
    reader.refreshSync();
    expect(inspect(x)).toMatch(/^Dataset \/x of .* \(NOT_FOUND\)$/);
  });
});

test('new File says what to call instead', () => {
  const make = File as unknown as new (...args: unknown[]) => File;
  for (const args of [[], ['run.h5'], ['run.h5', 'r']]) {
    let error: unknown;
    try {
      new make(...args);
    } catch (thrown) {
      error = thrown;
    }
    expect(isH5LogError(error, 'OPTION')).toBe(true);
    expect((error as H5LogError).message).toMatch(/File\.open.*File\.create/);
  }
});
