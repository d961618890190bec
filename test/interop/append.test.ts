import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { File } from '../../src/api/file.ts';
import { T } from '../../src/dtype/construct.ts';
import type { ObjectNode } from '../../src/hdf5/graph/object-node.ts';
import { chunked } from '../../src/hdf5/layouts/new-dataset.ts';
import { SCALAR_SPACE, simpleSpace } from '../../src/hdf5/messages/dataspace.ts';
import { setAttribute } from '../../src/hdf5/write/attributes.ts';
import { h5dump, pythonSync, runSync, withOracle } from '../oracles.ts';
import { some } from '../seed.ts';
import { temporaryDirectory } from '../temporary.ts';
import { type Description, expectSame, h5pyDescribes, Tally, withoutData } from './describe.ts';
import { cutChunks, Draft, ourDescribe, regionOf } from './driver.ts';
import { wasmCheck } from './wasm.ts';

const tally = new Tally();

/** Opens many files for writing and adds to each what moves old blocks about: members, attributes, deletions. */
const ADD = `
import sys, h5py, numpy as np
for path in sys.argv[1:]:
    with h5py.File(path, 'r+') as f:
        g = f.create_group('by h5py')
        g['data'] = np.arange(300.0)
        g['more'] = np.arange(300.0)
        del g['more']
        f.attrs['by h5py'] = np.arange(50)
        f['by us'].create_group('inner')
        for i in range(30):
            f['by us'].attrs['a%d' % i] = 'text %d' % i
        for i in range(200):
            g.create_group('member %d' % i)
`;

/** The description without what is named here, to compare the rest. */
function without(description: Description, paths: readonly string[], links: readonly string[]): Description {
  const copy = structuredClone(description);
  for (const path of Object.keys(copy))
    if (paths.some((p) => path === p || path.startsWith(`${p}/`))) delete copy[path];
  const root = copy['/'];
  if (root?.links) root.links = root.links.filter(([name]) => !links.includes(name));
  if (root?.attributes) root.attributes = root.attributes.filter(([name]) => !name.startsWith('by '));
  return copy;
}

const CHANGED = ['links-earliest-by-name.h5', 'links-latest-ordered.h5', 'space-page.h5', 'block-2048-earliest.h5'];

withOracle(['h5dump', 'python'], 'files of h5py that we append to', () => {
  const folder = temporaryDirectory();
  const all = JSON.parse(runSync('python', [fileURLToPath(new URL('make.py', import.meta.url)), folder])) as string[];
  const made = some(all, 'files to append to', (name) => /^(links|shared)/.test(name) || CHANGED.includes(name));
  const original = (name: string): string => join(folder, name);
  const appended = (name: string): string => join(folder, `appended-${name}`);
  const before = h5pyDescribes(made.map(original));
  let after: Description[] = [];
  afterAll(() => process.stdout.write(`interop: files of h5py that we append to: ${tally}\n`));

  /** An attribute on the root, a group with one, a dataset of each layout, a soft and a hard link. */
  function append(path: string): void {
    const draft = Draft.open(path);
    draft.attribute('/', 'by us', T.string(), SCALAR_SPACE, 'h5log');
    draft.group('/by us');
    draft.attribute('/by us', 'to', T.reference, simpleSpace([2]), ['/', '/by us']);
    draft.commit();
    draft.numbers('/by us/data', 'float64', simpleSpace([4]), Float64Array.of(1, 2, 3, 4));
    const values = Float64Array.from({ length: 300 }, (_, i) => i);
    for (const [name, max] of [
      ['array', [300]],
      ['tree', [null]],
    ] as const) {
      const layout = chunked([1], cutChunks(values, [300], [1], []));
      draft.dataset(
        `/by us/${name}`,
        { dtype: 'float64', space: simpleSpace([300], [...max]), layout },
        'float64',
        values,
      );
    }
    draft.softLink('/by us/soft', '/');
    draft.link('/by us/self', draft.at('/by us'));
    draft.close();
  }

  test.each(made)('%s: not a byte changes but those of the superblock', (name) => {
    copyFileSync(original(name), appended(name));
    append(appended(name));
    const old = readFileSync(original(name));
    const now = readFileSync(appended(name)).subarray(0, old.length);
    const at = old.indexOf('\x89HDF', 0, 'latin1');
    expect(now.subarray(0, at).equals(old.subarray(0, at))).toBe(true);
    expect(now.subarray(at + 48).equals(old.subarray(at + 48))).toBe(true);
  });

  test('h5dump and h5py read everything that was there, and what is new', () => {
    for (const name of made) h5dump('-H', appended(name));
    after = h5pyDescribes(made.map(appended));
    for (const [i, name] of made.entries()) {
      const rest = without(after[i] as Description, ['/by us'], ['by us']);
      expectSame(rest, before[i], name);
      expect(after[i]?.['/by us/data']?.dataset?.values, name).toHaveLength(4);
      expect(after[i]?.['/by us/tree']?.dataset?.values?.[299], name).toBe('4072b00000000000');
      expect(after[i]?.['/by us/array']?.dataset?.values?.[299], name).toBe('4072b00000000000');
      tally.add(after[i] as Description);
    }
  });

  test('our reader agrees', () => {
    for (const [i, name] of made.entries())
      expectSame(ourDescribe(appended(name)), withoutData(after[i] as Description), name);
  });

  test('an h5py r+ adds objects: everything of both is there', () => {
    pythonSync(ADD, made.map(appended));
    const last = h5pyDescribes(made.map(appended));
    for (const [i, name] of made.entries()) {
      h5dump('-H', appended(name));
      const ours = last[i] as Description;
      expectSame(without(ours, ['/by us', '/by h5py'], ['by us', 'by h5py']), before[i], name);
      for (const path of ['/by us/data', '/by us/tree', '/by us/array']) expectSame(ours[path], after[i]?.[path], path);
      expect(ours['/by us']?.attributes?.length).toBe(31);
      expect(ours['/by h5py/data']?.dataset?.values).toHaveLength(300);
      expectSame(ourDescribe(appended(name)), withoutData(ours), name);
      tally.add(ours);
    }
  });

  test('and we once more', () => {
    const chosen = some(made, 'appending once more', (name) => name.startsWith('shared'));
    for (const name of chosen) {
      const draft = Draft.open(appended(name));
      if (name.startsWith('shared')) {
        const bytes = readFileSync(appended(name));
        expect(() => draft.remove('/by h5py')).toThrow(/table of shared messages/);
        expect(() => draft.deleteAttribute('/', 'by h5py')).toThrow(/table of shared messages/);
        draft.close();
        expect(readFileSync(appended(name)).equals(bytes)).toBe(true);
        continue;
      }
      draft.remove('/by us');
      draft.remove('/by h5py');
      for (const attribute of ['by us', 'by h5py']) draft.deleteAttribute('/', attribute);
      draft.close();
    }
    const last = h5pyDescribes(chosen.map(appended));
    for (const [i, name] of chosen.entries()) {
      if (name.startsWith('shared')) continue;
      expectSame(without(last[i] as Description, [], []), before[made.indexOf(name)], name);
      tally.add(last[i] as Description);
    }
  });

  const everything = (name: string): string => join(folder, `all-${name}`);
  const changes = new Map<string, number>();

  test.each(made)('%s: every object may be changed at once', (name) => {
    copyFileSync(original(name), everything(name));
    const draft = Draft.open(everything(name));
    const seen = new Set<ObjectNode>([draft.root]);
    let refused = 0;
    for (const node of seen) {
      for (const link of node.links.values()) if (link.node) seen.add(link.node);
      try {
        draft.now(setAttribute(draft.structure, node, 'by all', 'int32', SCALAR_SPACE, 7));
      } catch (error) {
        // What a shared message refers to.
        expect((error as { code: string }).code).toBe('UNSUPPORTED');
        refused++;
      }
    }
    if (!/shared/.test(name)) expect(refused).toBe(0);
    draft.close();
    changes.set(name, seen.size - refused);
  });

  test('then h5py and h5wasm see all changes, and nothing else changed', async () => {
    for (const [i, now] of h5pyDescribes(made.map(everything)).entries()) {
      await wasmCheck(everything(made[i] as string), withoutData(now));
      tally.add(now);
      let changed = 0;
      for (const facts of Object.values(now)) {
        if (!facts.attributes) continue;
        const kept = facts.attributes.filter(([attribute]) => attribute !== 'by all');
        changed += facts.attributes.length - kept.length;
        facts.attributes = kept;
      }
      expect(changed).toBe(changes.get(made[i] as string));
      expectSame(now, before[i], made[i] as string);
    }
  });

  test('what libhdf5 keeps about an object stays: limits, comments, times', () => {
    const script = `
import sys, json, ctypes, h5py
from h5py import h5g
hdf5 = ctypes.CDLL(next(word for word in open('/proc/self/maps').read().split() if 'libhdf5' in word and '_hl' not in word))
def facts(path):
    with h5py.File(path) as f:
        g = f['settings'].id.get_create_plist()
        limits = [ctypes.c_uint(), ctypes.c_uint()]
        hdf5.H5Pget_link_phase_change(ctypes.c_int64(g.id), *[ctypes.byref(n) for n in limits])
        d = h5g.get_objinfo(f['with times'].id)
        return [[n.value for n in limits], g.get_link_creation_order(), g.get_attr_phase_change(), d.mtime, f['elsewhere'].external]
print(json.dumps([facts(p) for p in sys.argv[1:]]))`;
    const names = made.filter((name) => name.startsWith('links'));
    const old = JSON.parse(pythonSync(script, names.map(original))) as unknown[];
    expect(JSON.parse(pythonSync(script, names.map(everything)))).toEqual(old);
    for (const name of names) expect(h5dump('-H', everything(name))).toContain('COMMENT "about z"');
  });

  test.each(CHANGED)('%s: through File, as users do it', async (name) => {
    const path = join(folder, `file-${name}`);
    copyFileSync(original(name), path);
    {
      await using file = await File.open(path, { mode: 'r+' });
      file.attributes.set('by us', 'h5log');
      file.group('z/y').attributes.set('numbers', Float32Array.of(1, 2));
      file.dataset('alias').attributes.set('flag', true);
      file.createGroup('new/deep/er').attributes.set('n', 5n);
      file.createSoftLink('new/soft', '/z');
      file.createHardLink('new/hard', '/z/y/x/w/data');
      file.createExternalLink('new/out', 'other.h5', '/a');
      file.move('größe', 'new/size');
      await file.flush();
      file.delete('dangling');
      file.dataset('new/size').attributes.set('moved', 1);
    }
    const old = readFileSync(original(name));
    const at = old.indexOf('\x89HDF', 0, 'latin1');
    expect(
      readFileSync(path)
        .subarray(at + 48, old.length)
        .equals(old.subarray(at + 48)),
    ).toBe(true);
    const [now] = h5pyDescribes([path]) as [Description];
    expectSame(ourDescribe(path), withoutData(now), name);
    const was = before[made.indexOf(name)] as Description;
    expect(now['/new']?.links?.map(([link, kind]) => `${link} ${kind}`).sort()).toEqual([
      'deep hard',
      'hard hard',
      'out external',
      'size hard',
      'soft soft',
    ]);
    expect(now['/new/size']?.dataset).toEqual(was['/größe']?.dataset);
    expect(now['/dangling']).toBeUndefined();
    expect(now['/alias']?.count).toBe((was['/alias']?.count ?? 0) + 1);
    const untouched = ['/日本 😀', '/of type', '/z/y/x/w', '/settings', '/with times'];
    for (const where of untouched) expect(now[where], where).toEqual(was[where]);
    const names = (facts: Description[string] | undefined): string[] =>
      facts?.attributes?.map(([attribute]) => attribute) ?? [];
    expect(names(now['/z/y'])).toEqual(['numbers']);
    expect(names(now['/alias'])).toEqual(['flag']);
    expect(names(now['/new/size'])).toEqual(['moved']);
  });

  test('a tree of chunks in a file whose trees have another fan-out', () => {
    const path = join(folder, 'fan-out.h5');
    copyFileSync(original('both-k-earliest.h5'), path);
    const draft = Draft.open(path);
    const values = Float64Array.from({ length: 100 }, (_, i) => i);
    const chunks = cutChunks(values, [100], [1], []).map((place, i) => ({
      ...place,
      address: regionOf(new Uint8Array(values.slice(i, i + 1).buffer)),
    }));
    draft.dataset(
      '/tree',
      { dtype: 'float64', space: simpleSpace([100], [null]), layout: chunked([1], chunks) },
      'float64',
      values,
    );
    draft.close();
    pythonSync(
      'import sys, h5py\nwith h5py.File(sys.argv[1], "r+") as f:\n  f["tree"].resize((200,)); f["tree"][100:] = 5; f["chunks"].resize((600,)); f["chunks"][500:] = 6',
      [path],
    );
    const [now] = h5pyDescribes([path]) as [Description];
    expect(now['/tree']?.dataset?.values).toHaveLength(200);
    expect(now['/tree']?.dataset?.values?.slice(0, 100)).toEqual(draft.data.get('/tree'));
    expect(now['/chunks']?.dataset?.values).toHaveLength(600);
  });
});
