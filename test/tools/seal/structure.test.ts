import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { File, T } from 'h5log';
import { describe, expect, test } from 'vitest';
import { seal } from '../../../src/tools.ts';
import { h5dump, pythonSync, withOracle } from '../../oracles.ts';
import { folder as originals, readable, withSubfiles } from '../../original/fixtures.ts';
import { full } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { counting, sealAndCompare } from './sealed.ts';

const folder = temporaryDirectory();
let files = 0;
const newPath = (): string => join(folder, `${files++}.h5`);

async function makeTiles(path: string): Promise<void> {
  const file = await File.create(path, { publish: 'never' });
  const t = file.createDataset('t', { dtype: 'int32', shape: [20, 20] });
  for (let k = 0; k < 4; k++) {
    t.write(counting(new Int32Array(100), k * 100), { start: [(k >> 1) * 10, (k & 1) * 10], count: [10, 10] });
    await file.flush();
  }
  await file.close();
}

describe('a sealed file', () => {
  test('keeps names, order, links, references and attributes, and nothing of the log', async () => {
    const path = newPath();
    const file = await File.create(path);
    const add = (name: string): void => file.createDataset(name, { dtype: 'int8', shape: [4] }).write([1, 2, 3, 4]);
    for (const name of ['z', '_under', 'a/_deep/__two', 'm', '_']) add(name);
    file.createHardLink('alias', '/z');
    file.createSoftLink('a/soft', '/_under');
    file.createExternalLink('outside', 'other.h5', '/_x');
    const under = file.dataset('_under');
    for (const [name, value] of [
      ['units', 'K'],
      ['_FillValue', 7],
      ['b', [1, 2]],
      ['_', 'only an underscore'],
    ] as const)
      under.attributes.set(name, value);
    file.attributes.set('_own', 'of the root');
    file.attributes.set('points to', '/_under', { dtype: T.reference });
    file.dataset('z').attributes.set('_references', ['/m', '/a/_deep/__two'], { dtype: T.reference });
    file.createGroup('last/_empty');
    await file.close();

    const before = await File.open(path);
    const order = [...before.keys()];
    await before.close();
    await seal(path);

    const after = await File.open(path);
    expect(after.connector).toBe('native');
    expect([...after.keys()]).toEqual(order);
    expect(order).toEqual(['z', '_under', 'a', 'm', '_', 'alias', 'outside', 'last']);
    expect([...after.attributes.keys()]).toEqual(['_own', 'points to']);
    expect(after.attributes.get('points to')).toBe('/_under');
    expect(after.dataset('z').attributes.get('_references')).toEqual(['/m', '/a/_deep/__two']);
    expect([...after.dataset('_under').attributes].map(([name]) => name)).toEqual(['units', '_FillValue', 'b', '_']);
    expect(after.dataset('_under').attributes.get('_')).toBe('only an underscore');
    expect([...after.group('a/_deep').keys()]).toEqual(['__two']);
    expect(after.has('last/_empty')).toBe(true);
    await after.close();
  });

  test('keeps names that differ in leading underscores only', async () => {
    const path = newPath();
    const file = await File.create(path, { publish: 'never' });
    for (const name of ['__x', '_x', 'g/_y', 'g/__y', '_LOG']) {
      file.createDataset(name, { dtype: 'int8', shape: [] }).write(name.length);
      file.attributes.set(name, name.length);
    }
    file.createSoftLink('soft', '/__x');
    await file.close();
    await seal(path);
    const sealed = await File.open(path);
    expect([...sealed.keys()]).toEqual(['__x', '_x', 'g', '_LOG', 'soft']);
    for (const name of ['__x', '_x', 'g/_y', 'g/__y', '_LOG']) {
      expect(sealed.dataset(name).readSync()[0]).toBe(name.length);
      expect(sealed.attributes.get(name)).toBe(name.length);
    }
    expect(sealed.dataset('soft').readSync()[0]).toBe(3);
    await sealed.close();
  });

  test.each(['never', 'close'] as const)(
    "keeps users' attributes with names of the log's own, publish %s",
    async (publish) => {
      const path = newPath();
      const names = [
        '_dims',
        '_mdims',
        '_ID',
        '_chunks',
        '_filters',
        '_reach',
        '_token',
        '_log',
        '_view',
        '_note',
        '_number',
        '_at',
      ];
      const file = await File.create(path, { publish });
      for (const [name, filters] of [
        ['plain', []],
        ['filtered', ['shuffle']],
      ] as const) {
        const made = file.createDataset(name, { dtype: 'int8', shape: [3], maxShape: [null], chunks: [2], filters });
        for (const each of names) made.attributes.set(each, `of the user: ${each}`);
        made.write([1, 2, 3]);
        made.resize([2]);
      }
      await file.close();
      await seal(path);
      const after = await File.open(path);
      for (const name of ['plain', 'filtered'])
        expect([...after.dataset(name).attributes]).toEqual(names.map((each) => [each, `of the user: ${each}`]));
      await after.close();
    },
  );

  withOracle(['python', 'h5dump'], 'is ordinary for others', () => {
    test('links, references, names and order as h5py sees them', async () => {
      const path = newPath();
      const file = await File.create(path);
      for (const name of ['z', '_under', 'a/_deep/__two'])
        file.createDataset(name, { dtype: 'int8', shape: [4] }).write([1, 2, 3, 4]);
      file.createHardLink('alias', '/z');
      file.createSoftLink('a/soft', '/_under');
      file.dataset('z').attributes.set('_references', ['/_under', '/a/_deep/__two'], { dtype: T.reference });
      file.dataset('z').attributes.set('_text', 'ä variable one', { dtype: T.string() });
      await file.close();
      await sealAndCompare(path);
      const script = `
import h5py, sys, json
with h5py.File(sys.argv[1], 'r') as f:
    order = []
    f.id.links.iterate(lambda n: order.append(n.decode()), idx_type=h5py.h5.INDEX_CRT_ORDER)
    z = f['z']
    print(json.dumps(dict(order=order, same=(z == f['alias']), refs=[f[r].name for r in z.attrs['_references']], attrs=list(z.attrs), text=z.attrs['_text'],
        soft=f.get('a/soft', getlink=True).path, data=f['a/soft'][()].tolist(), two=list(f['a/_deep']), links=h5py.h5o.get_info(z.id).rc)))`;
      expect(JSON.parse(pythonSync(script, [path]))).toEqual({
        order: ['z', '_under', 'a', 'alias'],
        same: true,
        refs: ['/_under', '/a/_deep/__two'],
        attrs: ['_references', '_text'],
        text: 'ä variable one',
        soft: '/_under',
        data: [1, 2, 3, 4],
        two: ['__two'],
        links: 2,
      });
      expect(h5dump('-A', path)).not.toMatch(/_LOG|_int_att|_dims|_mdims|_ID|_chunks|_filters|_at/);
    });

    test('datasets that were ordinary before stay as they are, and h5py goes on writing', async () => {
      const path = newPath();
      await (await File.create(path)).close();
      pythonSync(
        `import h5py, sys, numpy
with h5py.File(sys.argv[1], 'r+') as f:
    f.create_dataset('g/plain', data=numpy.arange(100.0).reshape(10, 10))
    f.create_dataset('g/chunks', data=numpy.arange(100), chunks=(7,), compression='gzip', maxshape=(None,))
    f['named'] = numpy.dtype('<f8')
    f['g/plain'].attrs['r'] = f['g/chunks'].ref`,
        [path],
      );
      const file = await File.open(path, { mode: 'r+' });
      const t = file.createDataset('g/logged', { dtype: 'float64', shape: [10, 10], maxShape: [null, 10] });
      t.write(counting(new Float64Array(50)), { start: [0, 0], count: [5, 10] });
      t.write(counting(new Float64Array(50), 50), { start: [5, 0], count: [5, 10] });
      await file.close();
      const result = await seal(path);
      expect(result.datasets.map(({ path: name }) => name)).toEqual(['/g/logged']);
      const script = `
import h5py, sys, json
with h5py.File(sys.argv[1], 'r+') as f:
    d = f['g/logged']
    assert f['g/plain'][()].ravel().tolist() == d[()].ravel().tolist() == list(range(100))
    assert f['g/chunks'][()].tolist() == list(range(100)) and f[f['g/plain'].attrs['r']] == f['g/chunks']
    d.resize((12, 10)); d[11] = 5; d[3] = -1
with h5py.File(sys.argv[1], 'r') as f:
    d = f['g/logged'][()]
    assert d[11].tolist() == [5] * 10 and d[10].tolist() == [0] * 10 and d[3].tolist() == [-1] * 10 and d[4].tolist() == list(range(40, 50)), d
    assert list(f) == ['g', 'named'], list(f)
print('fine')`;
      expect(pythonSync(script, [path])).toBe('fine\n');
    });

    test('references in ordinary data cannot be updated: refused, and nothing has changed', async () => {
      const path = newPath();
      const file = await File.create(path);
      for (const name of ['a', 'b']) file.createDataset(name, { dtype: 'int8', shape: [3] }).write([1, 2, 3]);
      await file.close();
      pythonSync(
        `import h5py, sys
with h5py.File(sys.argv[1], 'r+') as f:
    f.create_dataset('r', (1,), dtype=h5py.ref_dtype)[0] = f['a'].ref`,
        [path],
      );
      const before = readFileSync(path);
      await expect(seal(path)).rejects.toMatchObject({
        code: 'UNSUPPORTED',
        message: /data of \/r refers to an object/,
      });
      expect(readFileSync(path).equals(before)).toBe(true);
    });

    test('files of the original', { timeout: 120_000 }, async () => {
      const figures: Record<string, number> = {};
      const sealed = readable.filter((name) => full || name.length % 3 === 0 || withSubfiles.includes(name));
      for (const name of sealed) {
        // Subfiles are named after the file.
        const path = join(temporaryDirectory(), name);
        cpSync(join(originals, name), path);
        const options = withSubfiles.includes(name) ? { to: newPath() } : {};
        if (options.to) cpSync(join(originals, `${name}.subfiles`), `${path}.subfiles`, { recursive: true });
        const { result } = await sealAndCompare(path, options, full);
        for (const { way } of result.datasets) figures[way] = (figures[way] ?? 0) + 1;
      }
      expect(sealed.length).toBeGreaterThan(10);
      console.log(`files of the original: ${sealed.length} sealed, ${JSON.stringify(figures)}`);
    });
  });
});

describe('seal', () => {
  test('to another file leaves the log as it is', async () => {
    const path = newPath();
    await makeTiles(path);
    const before = readFileSync(path);
    const to = newPath();
    const seen: string[] = [];
    const result = await seal(path, {
      to,
      progress: ({ done, total, dataset }) => seen.push(`${done}/${total} ${dataset}`),
    });
    expect(result).toEqual({ path: to, moved: 0, datasets: [{ path: '/t', way: 'chunked', moved: 0, pieces: 4 }] });
    expect(seen).toEqual(['1/1 /t']);
    expect(readFileSync(path).equals(before)).toBe(true);
    expect(readdirSync(folder).filter((name) => name.includes('.new') || name.includes('.lock'))).toEqual([]);
  });

  test('to another file works while a writer has the log open; in place it is LOCKED', async () => {
    const path = newPath();
    const file = await File.create(path);
    const t = file.createDataset('t', { dtype: 'int32', shape: [10] });
    t.write(counting(new Int32Array(10)));
    await file.flush();
    await expect(seal(path)).rejects.toMatchObject({ code: 'LOCKED' });
    const { datasets } = await seal(path, { to: newPath() });
    expect(datasets).toMatchObject([{ path: '/t', way: 'contiguous' }]);
    t.write([5], { start: [0], count: [1] });
    await file.close();
    const again = await File.open(path);
    expect([...((await again.dataset('t').read()) as Int32Array)]).toEqual([5, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    await again.close();
  });

  test('twice, or of an ordinary file: says so and leaves it alone', async () => {
    const path = newPath();
    await makeTiles(path);
    await seal(path);
    const before = readFileSync(path);
    await expect(seal(path)).rejects.toMatchObject({
      code: 'UNSUPPORTED',
      message: /no log: it is ordinary HDF5 already/,
    });
    await expect(seal(path, { to: newPath() })).rejects.toMatchObject({ code: 'UNSUPPORTED', message: /no log/ });
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test('refuses what is no file, no path and no option', async () => {
    await expect(seal(newPath())).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(seal(newPath(), { to: 5 as unknown as string })).rejects.toMatchObject({ code: 'OPTION' });
    const path = newPath();
    await makeTiles(path);
    await expect(seal(path, { to: join(folder, '.', path.slice(folder.length)) })).rejects.toMatchObject({
      code: 'OPTION',
      message: /is the file itself/,
    });
    await expect(seal(newPath(), { progress: 5 as unknown as () => void })).rejects.toMatchObject({ code: 'OPTION' });
  });

  test('does not replace a file that exists, unless by force and when it is complete', async () => {
    const path = newPath();
    const to = newPath();
    await makeTiles(path);
    writeFileSync(to, 'precious');
    await expect(seal(path, { to })).rejects.toMatchObject({ code: 'EXISTS', file: to });
    const stop = new AbortController();
    const reason = new Error('enough');
    const stopped = seal(path, { to, force: true, signal: stop.signal, progress: () => stop.abort(reason) });
    await expect(stopped).rejects.toBe(reason);
    expect(readFileSync(to, 'utf8')).toBe('precious');
    await expect(seal(path, { to, force: 'yes' as unknown as boolean })).rejects.toMatchObject({ code: 'OPTION' });
    expect((await seal(path, { to, force: true })).path).toBe(to);
    await using sealed = await File.open(to);
    expect(sealed.dataset('t').shape).toEqual([20, 20]);
  });

  test('stops at a signal in the middle of a dataset, and timers go on', async () => {
    const path = newPath();
    const file = await File.create(path);
    const t = file.createDataset('t', { dtype: 'float64', shape: [80, 2 ** 16] });
    for (let r = 0; r < 80; r++)
      for (let k = 0; k < 64; k++)
        t.write(new Float64Array(1023).fill(r), { start: [r, k * 1024 + (r % 2)], count: [1, 1023] });
    await file.close();
    const before = readFileSync(path);
    const reports: number[] = [];
    // As many pieces as this are copied, window by window.
    const all = await seal(path, { to: newPath(), progress: ({ moved }) => reports.push(moved) });
    expect(all.datasets[0]?.way).toBe('copied');
    expect(reports.length).toBeGreaterThan(5);
    const stop = new AbortController();
    const stopped = seal(path, {
      signal: stop.signal,
      progress: ({ moved }) => {
        if (moved > all.moved / 2) stop.abort(new Error('enough'));
      },
    });
    await expect(stopped).rejects.toThrow('enough');
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test('stops at a signal and leaves the log', async () => {
    const path = newPath();
    const file = await File.create(path);
    for (const name of ['a', 'b', 'c']) file.createDataset(name, { dtype: 'int8', shape: [3] }).write([1, 2, 3]);
    await file.close();
    const before = readFileSync(path);
    const stop = new AbortController();
    const reason = new Error('enough');
    await expect(seal(path, { signal: stop.signal, progress: () => stop.abort(reason) })).rejects.toBe(reason);
    expect(readFileSync(path).equals(before)).toBe(true);
  });
});
