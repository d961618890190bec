import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { File } from 'h5log';
import { netcdf } from 'h5log/netcdf';
import { replay, seal } from 'h5log/tools';
import { expect, test } from 'vitest';
import { count } from '../counts.ts';
import { ncdump, runSync, withOracle } from '../oracles.ts';
import { random, repeats, seed } from '../seed.ts';
import { temporaryDirectory } from '../temporary.ts';
import { type Expected, RandomFile } from './random-file.ts';
import { ours, type Said, said } from './seen.ts';

const directory = temporaryDirectory();

/** xarray knows the dimensions that variables have. */
function withoutDimensions({ variables, attributes, groups }: Expected): unknown {
  return {
    variables,
    attributes,
    groups: Object.fromEntries(Object.entries(groups).map(([name, inner]) => [name, withoutDimensions(inner)])),
  };
}

/** h5netcdf 1.1 does not pad text: where a variable is shorter than its unlimited dimension its values are left out. */
function paddedBy({ variables, groups, ...rest }: Expected, unpadded: Expected): Expected {
  const shown = Object.entries(variables).map(([name, variable]) => {
    const isText = variable.type === 'char' || variable.type === 'string';
    const values = unpadded.variables[name]?.values;
    return [name, isText && values && values.length < variable.values.length ? { ...variable, values } : variable];
  });
  const inner = Object.entries(groups).map(([name, group]) => [
    name,
    paddedBy(group, unpadded.groups[name] as Expected),
  ]);
  return { ...rest, variables: Object.fromEntries(shown), groups: Object.fromEntries(inner) } as Expected;
}

/** `settled`: scales know what they are attached to, which they need not while the file is being written. */
function agree(path: string, expected: Expected, by: Said, settled: boolean): void {
  expect(by.netCDF4, `${path} by netCDF4`).toEqual(expected);
  expect(withoutDimensions(by.netcdf4), `${path} by xarray, netcdf4`).toEqual(withoutDimensions(expected));
  const padded = paddedBy(expected, by.h5netcdf);
  expect(withoutDimensions(by.h5netcdf), `${path} by xarray, h5netcdf`).toEqual(withoutDimensions(padded));
  const problems = by.h5py.filter((text) => settled || !text.includes('does not know that it is attached'));
  expect(problems, `${path} by h5py`).toEqual([]);
}

/** ncgen 4.9.0 puts the characters of variables with several dimensions at wrong places, or crashes, if one of them is unlimited. */
function hasTextTables({ variables, groups }: Expected): boolean {
  return (
    Object.values(variables).some(({ type, dimensions }) => type === 'char' && dimensions.length > 1) ||
    Object.values(groups).some(hasTextTables)
  );
}

withOracle(['ncdump', 'ncgen', 'xarray'], 'files by h5log/netcdf', () => {
  const many = repeats(100);
  const timeout = 60_000 + 12_000 * many;
  const next = random(seed('netcdf files'));
  count('netcdf files', { files: many });

  test(`are the same to everybody: ${many} random data sets, ordinary, sealed and replayed`, { timeout }, async () => {
    const expected = new Map<string, Expected>();
    for (let i = 0; i < many; i++) {
      const from = Math.floor(next() * 2 ** 31);
      for (const connector of ['native', 'log'] as const) {
        const path = join(directory, `${connector}-${i}.nc`);
        let file = await File.create(path, { connector });
        const made = new RandomFile(file, random(from));
        made.write();
        await file.flush();
        made.write();
        await file.close();
        const model = made.expected();
        file = await File.open(path);
        expect(await ours(netcdf(file)), path).toEqual(model);
        await file.close();
        if (connector === 'native') expected.set(path, model);
        else {
          const [sealed, replayed] = [join(directory, `sealed-${i}.nc`), join(directory, `replayed-${i}.nc`)];
          await seal(path, { to: sealed });
          await replay(path, replayed);
          expected.set(sealed, model).set(replayed, model);
        }
      }
    }
    expectSame(expected);
  });

  test(`are the same to everybody where they are published: ${many} random data sets, at every flush and at close`, {
    timeout,
  }, async () => {
    const expected = new Map<string, Expected>();
    const open = new Set<string>();
    const again = random(seed('netcdf files, published'));
    for (let i = 0; i < many; i++) {
      const from = Math.floor(again() * 2 ** 31);
      const publish = (['flush', 'close', { interval: 0 }] as const)[i % 3] ?? 'flush';
      const path = join(directory, `published-${i}.nc`);
      let states = 0;
      const keep = (made: RandomFile): void => {
        const copy = join(directory, `published-${i}-${states++}.nc`);
        copyFileSync(path, copy);
        expected.set(copy, made.expected());
        if (!file.closed) open.add(copy);
      };
      const file = await File.create(path, { publish });
      const made = new RandomFile(file, random(from));
      for (let flush = 0; flush < 3; flush++) {
        made.write();
        if (flush === 1) file.flushSync();
        else await file.flush();
        if (publish !== 'close') keep(made);
        // Whatever is in it, libnetcdf does not crash.
        ncdump('-h', path);
      }
      if (publish === 'close') {
        await file.publish();
        keep(made);
      }
      made.write();
      await file.close();
      keep(made);
      const reader = await File.open(path);
      expect(await ours(netcdf(reader)), path).toEqual(made.expected());
      await reader.close();
    }
    expectSame(expected, open);
  });

  /** Everybody sees what is expected of each file, and what ncdump prints becomes the file again. */
  function expectSame(expected: ReadonlyMap<string, Expected>, open: ReadonlySet<string> = new Set()): void {
    const found = said([...expected.keys()]);
    for (const [path, model] of expected) agree(path, model, found[path] as Said, !open.has(path));
    // ncdump, header and data, becomes a file again.
    const again = new Map<string, Expected>();
    for (const [path, model] of expected) {
      if (hasTextTables(model)) continue;
      const copy = `${path}.again`;
      runSync('ncgen', ['-4', '-o', copy, '-'], ncdump('-p', '9,17', path));
      again.set(copy, model);
    }
    expect(again.size).toBeGreaterThan(expected.size / 4);
    count('netcdf files through ncdump and ncgen', { files: again.size });
    const copies = said([...again.keys()]);
    for (const [path, model] of again) expect(copies[path]?.netCDF4, path).toEqual(model);
  }
});
