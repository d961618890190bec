import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { T } from '../../src/dtype/construct.ts';
import { compact, contiguous } from '../../src/hdf5/layouts/new-dataset.ts';
import { SCALAR_SPACE, simpleSpace } from '../../src/hdf5/messages/dataspace.ts';
import { pythonSync, withOracle } from '../oracles.ts';
import { random, repeats, seed } from '../seed.ts';
import { temporaryDirectory } from '../temporary.ts';
import { checkFile, printTally } from './check.ts';
import { h5pyDescribe } from './describe.ts';
import { Draft, ourDescribe, regionOf } from './driver.ts';

const folder = temporaryDirectory();
const fresh = (name: string): [string, Draft] => {
  const path = join(folder, name);
  return [path, Draft.create(path)];
};

/** h5py opens the file for writing, adds a group with an attribute and a dataset, and closes it. */
const ADD = `
import sys, h5py
with h5py.File(sys.argv[1], 'r+') as f:
    g = f.create_group(sys.argv[2])
    g.attrs['by'] = 'h5py'
    g['numbers'] = [1.5, 2.5, 3.5]
    f.attrs['touched'] = 1
`;

withOracle(['h5dump', 'h5ls', 'ncdump', 'python'], 'objects that we write', () => {
  afterAll(() => printTally('interop: objects that we write'));

  test('an empty file', async () => {
    const [path, draft] = fresh('empty.h5');
    draft.close();
    await checkFile(path, draft);
  });

  test('nested groups, links of every kind, in order of creation', async () => {
    const [path, draft] = fresh('links.h5');
    for (const name of ['/zebra', '/zebra/ape', '/zebra/ape/yak', '/ant', '/ant/zoo', '/ant/bee']) draft.group(name);
    draft.numbers('/zebra/data', 'int32', simpleSpace([3]), Int32Array.of(1, 2, 3));
    draft.link('/ant/alias', draft.at('/zebra/data'));
    draft.link('/ant/bee/up', draft.at('/ant'));
    draft.link('/zebra/ape/root', draft.at('/'));
    draft.softLink('/m soft', '/zebra/data');
    draft.softLink('/ant/relative', 'zoo/../nowhere');
    draft.softLink('/ant/dangling', '/not/there');
    draft.close();
    const seen = await checkFile(path, draft, {
      noNetcdf: 'ncdump follows hard-link cycles without end and refuses dangling soft links, also those of h5py',
    });
    expect(seen['/']?.links?.map(([name]) => name)).toEqual(['zebra', 'ant', 'm soft']);
    expect(seen['/ant']?.links?.map(([name]) => name)).toEqual(['zoo', 'bee', 'alias', 'relative', 'dangling']);
    expect(seen['/ant/alias']?.same ?? seen['/zebra/data']?.same).toBeDefined();
  });

  test('links without cycles, also to other files', async () => {
    const [target, other] = fresh('target.h5');
    other.group('/g');
    other.numbers('/g/d', 'float64', simpleSpace([2]), Float64Array.of(1, 2));
    other.softLink('/soft', '/g');
    other.link('/alias', other.at('/g/d'));
    other.close();
    const [path, draft] = fresh('external.h5');
    draft.group('/a');
    draft.externalLink('/a/out', 'target.h5', '/g/d');
    draft.externalLink('/a/nowhere', 'größe.h5', '/x');
    draft.softLink('/a/through', '/a/out');
    draft.close();
    await checkFile(path, draft, { noNetcdf: 'ncdump refuses external links, also those of h5py' });
    await checkFile(target, other);
    const read = pythonSync('import sys, h5py; print(h5py.File(sys.argv[1])["/a/through"][:].tolist())', [path]);
    expect(read.trim()).toBe('[1.0, 2.0]');
  });

  test.each([1, 10, 5000])('a group of %i members', async (count) => {
    const [path, draft] = fresh(`members-${count}.h5`);
    draft.group('/g');
    const names = Array.from({ length: count }, (_, i) => `m${(i * 7919) % count}`);
    for (const name of names) draft.group(`/g/${name}`);
    draft.close();
    const seen = await checkFile(path, draft);
    expect(seen['/g']?.links?.map(([name]) => name)).toEqual(names);
  });

  test('a committed datatype, shared by datasets and counted', async () => {
    const [path, draft] = fresh('committed.h5');
    const point = T.compound({ x: 'float64', y: 'float64' });
    const type = draft.datatype('/point', point);
    draft.attribute('/point', 'about', T.string(), SCALAR_SPACE, 'a place');
    const layout = compact(new Uint8Array(new Float64Array([1, 2, 3, 4]).buffer));
    for (const name of ['/a', '/b', '/c']) {
      draft.dataset(name, { dtype: type, space: simpleSpace([2]), layout }, point, [
        { x: 1, y: 2 },
        { x: 3, y: 4 },
      ]);
    }
    draft.commit();
    draft.remove('/c');
    draft.close();
    const seen = await checkFile(path, draft);
    expect(seen['/point']?.count).toBe(3);
    const same = pythonSync('import sys, h5py; f = h5py.File(sys.argv[1]); print(f["a"].id.get_type().committed())', [
      path,
    ]);
    expect(same.trim()).toBe('True');
  });

  test('many commits and sessions with changes in between: new, deleted, moved, replaced by other sizes', async () => {
    let [path, draft] = fresh('changes.h5');
    const next = random(seed('interop: changes'));
    const pick = <V>(list: readonly V[]): V => list[Math.floor(next() * list.length)] as V;
    const paths: string[] = [];
    const parents = (): string[] => ['', ...paths.filter((where) => where.includes('/g'))];
    for (let commit = 0; commit < repeats(600); commit++) {
      for (let step = 0; step < 8; step++) {
        const choice = next();
        if (choice < 0.3 || paths.length < 4) {
          const name = `${pick(parents().filter((p) => /^(\/g\d+)*$/.test(p)))}/g${commit}_${step}`.replace('_', '');
          draft.group(name);
          paths.push(name);
        } else if (choice < 0.45) {
          const values = Float64Array.from({ length: Math.ceil(next() * 20) }, () => next());
          const name = `/d${commit}x${step}`;
          draft.numbers(name, 'float64', simpleSpace([values.length]), values);
          paths.push(name);
        } else if (choice < 0.8) {
          const where = pick(['/', ...paths]);
          if (next() < 0.5)
            draft.attribute(
              where,
              `a${Math.floor(next() * 9)}`,
              T.string(),
              SCALAR_SPACE,
              'x'.repeat(Math.floor(next() * 90)),
            );
          else {
            const values = Int32Array.from({ length: Math.ceil(next() * 40) }, (_, i) => i);
            draft.attribute(where, `a${Math.floor(next() * 9)}`, 'int32', simpleSpace([values.length]), values);
          }
        } else if (choice < 0.9) {
          const where = pick(paths);
          draft.remove(where);
          for (const gone of paths.filter((p) => p === where || p.startsWith(`${where}/`)))
            paths.splice(paths.indexOf(gone), 1);
        } else {
          const leaves = paths.filter((p) => p.startsWith('/d'));
          if (leaves.length === 0) continue;
          const where = pick(leaves);
          const to = `/d${commit}m${step}`;
          draft.move(where, to);
          paths[paths.indexOf(where)] = to;
        }
      }
      draft.commit();
      if (next() < 0.2) draft = draft.reopen(path);
      if (commit % repeats(150) === 7) {
        draft.storage.blocking?.sync();
        await checkFile(path, draft);
      }
    }
    draft.close();
    await checkFile(path, draft);
  });

  test('what was refused leaves nothing behind', async () => {
    const [path, draft] = fresh('refused.h5');
    draft.group('/taken');
    draft.datatype('/type', 'int32');
    draft.commit();
    const dataset = {
      dtype: 'float64',
      space: simpleSpace([1]),
      layout: contiguous(regionOf(new Uint8Array(8))),
    } as const;
    const exists = expect.objectContaining({ code: 'EXISTS' });
    expect(() => draft.group('/taken')).toThrow(exists);
    expect(() => draft.datatype('/taken', 'int8')).toThrow(exists);
    expect(() => draft.dataset('/taken', dataset, 'float64', [0])).toThrow(exists);
    expect(() => draft.dataset('/taken', { ...dataset, dtype: draft.at('/type') }, 'float64', [0])).toThrow(exists);
    expect(() => draft.link('/taken', draft.at('/type'))).toThrow(exists);
    expect(() => draft.move('/type', '/taken')).toThrow(exists);
    expect(() => draft.group(`/${'y'.repeat(70_000)}`)).toThrow(/at most 65535/);
    expect(draft.commit()).toBe(0);
    draft.close();
    const seen = await checkFile(path, draft, { noNetcdf: 'netCDF knows no committed numbers' });
    expect(seen['/type']?.count).toBe(1);
  });

  test('bytes that two datasets share stay when one of them goes', async () => {
    const [path, draft] = fresh('shared-bytes.h5');
    const data = regionOf(new Uint8Array(Float64Array.of(1, 2, 3).buffer));
    for (const name of ['/one', '/two']) {
      draft.dataset(
        name,
        { dtype: 'float64', space: simpleSpace([3]), layout: contiguous(data) },
        'float64',
        [1, 2, 3],
      );
    }
    draft.remove('/one');
    draft.close();
    const seen = await checkFile(path, draft);
    expect(seen['/two']?.dataset?.values).toHaveLength(3);
  });

  test('thousands of commits on a root with 10,000 links', async () => {
    const [path, draft] = fresh('root.h5');
    for (let i = 0; i < 10_000; i++) draft.group(`/m${(i * 7919) % 10_000}`);
    draft.commit();
    const commits = repeats(20_000);
    let most = 0;
    for (let i = 0; i < commits; i++) {
      draft.attribute('/', 'counts', 'int32', simpleSpace([5]), Int32Array.of(i, 0, 0, 0, 0));
      most = Math.max(most, draft.commit());
    }
    draft.close();
    expect(most).toBeLessThan(2048);
    await checkFile(path, draft);
    process.stdout.write(`interop: ${commits} commits on 10,000 links, at most ${most} bytes each\n`);
  });

  test('an h5py r+ that adds objects, then we append again, then h5py', async () => {
    const [path, draft] = fresh('between.h5');
    draft.group('/first');
    for (let i = 0; i < 200; i++) draft.group(`/first/n${i}`);
    for (let i = 0; i < 100; i++) draft.attribute('/first', `a${i}`, 'int32', SCALAR_SPACE, i);
    draft.numbers('/data', 'float32', simpleSpace([4]), Float32Array.of(1, 2, 3, 4));
    draft.close();
    const before = h5pyDescribe(path);
    pythonSync(ADD, [path, '/first/by h5py']);
    const between = await checkFile(path);
    for (const where of ['/data', '/first/n17']) expect(between[where]).toEqual(before[where]);
    expect(between['/first/by h5py/numbers']?.dataset?.values).toHaveLength(3);

    const copy = join(folder, 'between-copy.h5');
    copyFileSync(path, copy);
    const again = Draft.open(path);
    again.group('/first/by us');
    again.attribute('/first/by h5py', 'seen', T.bool, SCALAR_SPACE, true);
    again.close();
    const old = readFileSync(copy);
    expect(readFileSync(path).subarray(48, old.length).equals(old.subarray(48))).toBe(true);
    pythonSync(ADD, [path, '/second']);
    const after = await checkFile(path);
    for (const where of ['/data', '/first/n17', '/first/by h5py/numbers']) expect(after[where]).toEqual(between[where]);
    expect(Object.keys(after)).toEqual(expect.arrayContaining(['/first/by us', '/second/numbers']));
    expect(ourDescribe(path)['/first']?.attributes).toHaveLength(100);
  });
});
