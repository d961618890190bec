import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CreateOptions, File, T } from 'h5log';
import { expect, test } from 'vitest';
import { checkLogFile, readAsOriginal, seenByH5py } from '../log/format/check-log.ts';
import { pythonSync, withOracle } from '../oracles.ts';
import { temporaryDirectory } from '../temporary.ts';

const folder = temporaryDirectory();

/** The bytes of a dataset, as int32, as the original reads it, which knows nothing of layouts. */
function asOriginal(path: string): number[] {
  const bytes = readFileSync(path);
  const [seen] = seenByH5py([path]);
  if (!seen) throw new Error('h5py sees nothing');
  const raw = readAsOriginal(bytes, checkLogFile(bytes, seen), 0);
  if (!raw) throw new Error('the original cannot read it');
  return Array.from({ length: raw.length / 4 }, (_, i) => raw.readInt32LE(4 * i));
}

/** Makes a published file with 1 to 6 in chunks of 4. */
function make(name: string, publish: NonNullable<CreateOptions['publish']>): string {
  const path = join(folder, `${name}.h5`);
  const file = File.createSync(path, { publish });
  const d = file.createDataset('d', { dtype: 'int32', shape: [6], maxShape: [null], chunks: [4], fill: -1 });
  d.write(Int32Array.of(1, 2, 3, 4, 5, 6));
  file.closeSync();
  return path;
}

withOracle('python', 'published files for the original', () => {
  test.each(['flush', 'close'] as const)('publish %s, shrunk and grown again: what was cut off is fill', (publish) => {
    const path = make(publish, publish);
    const file = File.openSync(path, { mode: 'r+' });
    file.dataset('d').resize([3]);
    file.flushSync();
    file.dataset('d').resize([5]);
    file.closeSync();
    expect(asOriginal(path)).toEqual([1, 2, 3, -1, -1]);
    const again = File.openSync(path, { mode: 'r+' });
    again.dataset('d').resize([7]);
    again.dataset('d', 'int32').write(Int32Array.of(9), { start: [4], count: [1] });
    again.closeSync();
    expect(asOriginal(path)).toEqual([1, 2, 3, -1, 9, -1, -1]);
  });

  test('texts, shrunk and grown again: what was cut off points nowhere', () => {
    const path = join(folder, 'texts.h5');
    const file = File.createSync(path, { publish: 'flush' });
    file.createDataset('d', { dtype: T.string(), shape: [3], maxShape: [null] }).write(['a', 'b', 'c']);
    file.flushSync();
    file.dataset('d').resize([1]);
    file.flushSync();
    file.dataset('d').resize([3]);
    file.closeSync();
    const [first, ...rest] = asOriginal(path);
    expect(first).toBe(1);
    expect(rest.slice(3)).toEqual(new Array(8).fill(0));
  });

  test.each([3, 0])('shrunk by h5py: what h5log writes at %i is there, and what was cut off is fill', (at) => {
    const path = make(`foreign-${at}`, 'close');
    pythonSync(`import h5py, sys\nwith h5py.File(sys.argv[1], 'r+') as f: f['d'].resize((3,))`, [path]);
    const file = File.openSync(path, { mode: 'r+' });
    const d = file.dataset('d', 'int32');
    if (at === 3) d.append(Int32Array.of(7));
    else d.write(Int32Array.of(7), { start: [at], count: [1] });
    file.closeSync();
    const expected = [1, 2, 3];
    expected[at] = 7;
    expect(asOriginal(path)).toEqual(expected);
    const again = File.openSync(path, { mode: 'r+' });
    again.dataset('d').resize([6]);
    again.closeSync();
    expect(asOriginal(path)).toEqual([...expected, -1, -1, -1].slice(0, 6));
  });
});
