import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { File } from '../../src/api/file.ts';
import { runSync, withOracle } from '../oracles.ts';
import { temporaryDirectory } from '../temporary.ts';
import { type Description, expectSame, h5pyDescribes, Tally, withoutData } from './describe.ts';
import { ourDescribe } from './driver.ts';

const tally = new Tally();

withOracle('python', 'files that h5py writes', () => {
  const folder = temporaryDirectory();
  const names = JSON.parse(runSync('python', [fileURLToPath(new URL('make.py', import.meta.url)), folder])) as string[];
  const seen = h5pyDescribes(
    names.map((name) => join(folder, name)),
    false,
  );
  afterAll(() => process.stdout.write(`interop: files of h5py that we read: ${tally}\n`));

  test.each(names.map((name, i) => [name, i] as const))('%s is listed as h5py lists it', (name, i) => {
    const theirs = withoutData(seen[i] as Description);
    expectSame(ourDescribe(join(folder, name)), theirs, name);
    tally.add(theirs);
  });

  test('the superblocks are of version 0, 1, 2 and 3', () => {
    const versions = names.map((name) => {
      const bytes = readFileSync(join(folder, name));
      return bytes[bytes.indexOf('\x89HDF', 0, 'latin1') + 8];
    });
    expect(new Set(versions)).toEqual(new Set([0, 1, 2, 3]));
  });

  test.each(['earliest', 'latest'])('File.open lists groups, datasets and attributes of %s', async (libver) => {
    await using file = await File.open(join(folder, `links-${libver}-by-name.h5`));
    expect([...file.keys()]).toEqual(
      seen[names.indexOf(`links-${libver}-by-name.h5`)]?.['/']?.links?.map(([name]) => name),
    );
    expect(file.get('soft')?.kind).toBe('group');
    expect(file.get('soft/w/data')?.kind).toBe('dataset');
    expect(file.get('dangling')).toBeUndefined();
    expect(file.get('out')).toBeUndefined();
    expect(file.dataset('alias').shape).toEqual([4]);
    expect(file.attributes.get('to')).toBe('/z/y');
  });
});

withOracle('python', "the original's files", () => {
  const folder = fileURLToPath(new URL('../fixtures/original/', import.meta.url));
  const names = readdirSync(folder).filter((name) => name.endsWith('.h5'));
  const seen = h5pyDescribes(
    names.map((name) => join(folder, name)),
    false,
  );

  test.each(names.map((name, i) => [name, i] as const))('%s is listed as h5py lists it', (name, i) => {
    expectSame(ourDescribe(join(folder, name)), withoutData(seen[i] as Description), name);
    tally.add(seen[i] as Description);
  });

  test.each(names)('%s has the datasets that were written', async (name) => {
    await using file = await File.open(join(folder, name));
    const expected = JSON.parse(readFileSync(join(folder, name.replace('.h5', '.expected.json')), 'utf8')) as {
      datasets: Record<string, { shape: number[] }>;
    };
    expect(Object.keys(expected.datasets).length).toBeGreaterThan(-1);
    for (const [path, { shape }] of Object.entries(expected.datasets)) expect(file.dataset(path).shape).toEqual(shape);
  });
});
