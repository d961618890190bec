import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { File, T } from 'h5log';
import { compact, diff, replay, seal, stat, verify } from 'h5log/tools';
import { describe, expect, test } from 'vitest';
import { h5dump, oracle, pythonSync } from '../oracles.ts';
import { temporaryDirectory } from '../temporary.ts';

const RECORD = T.compound({ n: 'int32', s: T.string(), rows: T.vlen('float64'), to: T.reference });

/** Values of every kind that points elsewhere, in several commits, partly overwritten. */
async function make(path: string): Promise<Record<string, unknown>> {
  const file = await File.create(path);
  file.createGroup('g').createGroup('inner');
  const text = file.createDataset('text', { dtype: T.string(), shape: [5] });
  const grown = file.createDataset('grown', {
    dtype: T.string(),
    shape: [0, 2],
    maxShape: [null, 2],
    chunks: [2, 2],
    filters: ['shuffle', { deflate: 6 }],
  });
  const rows = file.createDataset('rows', { dtype: T.vlen('int16'), shape: [3], maxShape: [null] });
  const refs = file.createDataset('refs', { dtype: T.reference, shape: [4], filters: [{ deflate: 4 }] });
  const records = file.createDataset('g/records', { dtype: RECORD, shape: [2] });
  const nested = file.createDataset('nested', {
    dtype: T.vlen(T.compound({ t: T.string(), r: T.reference })),
    shape: [2],
  });
  file.createDataset('never', { dtype: T.string(), shape: [2] });
  text.write(['one', 'two', '', 'vier', 'fünf']);
  grown.append(['a', 'b', 'c', 'd', 'e', 'f']);
  rows.write([Int16Array.of(1, 2), new Int16Array(0), Int16Array.of(3)]);
  refs.write(['/g', '', '/text', '/g/inner']);
  await file.flush();
  records.write([
    { n: 1, s: 'first', rows: Float64Array.of(0.5), to: '/g' },
    { n: 2, s: '', rows: new Float64Array(0), to: '' },
  ]);
  nested.write([
    [
      { t: 'x', r: '/g/records' },
      { t: 'ü', r: '' },
    ],
    [],
  ]);
  text.write(['zwei'], { start: [1], count: [1] });
  grown.append(['g', 'h']);
  refs.write(['/refs'], { start: [1], count: [1] });
  file.group('g').attributes.set('moved', 1);
  await file.close();
  return {
    text: ['one', 'zwei', '', 'vier', 'fünf'],
    grown: ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'],
    rows: [[1, 2], [], [3]],
    refs: ['/g', '/refs', '/text', '/g/inner'],
    'g/records': [
      { n: 1, s: 'first', rows: [0.5], to: '/g' },
      { n: 2, s: '', rows: [], to: '' },
    ],
    nested: [
      [
        { t: 'x', r: '/g/records' },
        { t: 'ü', r: '' },
      ],
      [],
    ],
    never: ['', ''],
  };
}

const plain = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_, item) => (ArrayBuffer.isView(item) ? Array.from(item as Int16Array) : item)));

async function contents(path: string, names: readonly string[]): Promise<Record<string, unknown>> {
  const file = await File.open(path);
  const found: Record<string, unknown> = {};
  for (const name of names) found[name] = plain(await file.dataset(name).read());
  await file.close();
  return found;
}

const H5PY = `
import h5py, json, sys
import numpy as np
def say(f, v, dt):
    ref = h5py.check_ref_dtype(dt)
    if ref is not None: return f[v].name if v else ''
    if h5py.check_string_dtype(dt): return v.decode() if isinstance(v, bytes) else v
    base = h5py.check_vlen_dtype(dt)
    if base is not None: return [say(f, x, base) for x in v]
    if dt.fields: return {n: say(f, v[n], dt.fields[n][0]) for n in dt.names}
    return v.item() if hasattr(v, 'item') else v
with h5py.File(sys.argv[1], 'r') as f:
    print(json.dumps({n: [say(f, v, f[n].dtype) for v in f[n][...].reshape(-1)] for n in sys.argv[2:]}))
`;

const byH5py = (path: string, names: readonly string[]): unknown => JSON.parse(pythonSync(H5PY, [path, ...names]));

describe('data that points elsewhere', () => {
  const folder = temporaryDirectory();

  test('is replayed, sealed and compacted with what it points to, and h5py reads the same', async () => {
    const path = join(folder, 'log.h5');
    const expected = await make(path);
    const names = Object.keys(expected);
    expect(await contents(path, names)).toEqual(expected);
    expect((await verify(path)).problems).toEqual([]);
    const replayed = join(folder, 'replayed.h5');
    await replay(path, replayed);
    expect(await contents(replayed, names)).toEqual(expected);
    const compacted = join(folder, 'compacted.h5');
    await compact(path, compacted);
    expect(await contents(compacted, names)).toEqual(expected);
    expect((await verify(compacted)).problems).toEqual([]);
    const sealed = join(folder, 'sealed.h5');
    cpSync(path, sealed);
    await seal(sealed);
    expect(await contents(sealed, names)).toEqual(expected);
    const sealedCompact = join(folder, 'sealed-compact.h5');
    await seal(compacted, { to: sealedCompact });
    for (const other of [replayed, compacted, sealed, sealedCompact])
      expect((await diff(path, other)).differences, other).toBe(0);
    expect((await stat(path)).datasets.length).toBe(names.length);
    const { nested, ...others } = expected;
    for (const other of [replayed, sealed, sealedCompact]) {
      // h5py 3.7 crashes on sequences of records with texts, whoever wrote them.
      if (oracle('python')) expect(byH5py(other, Object.keys(others)), other).toEqual(others);
      if (oracle('h5dump')) expect(h5dump('-d', '/nested', other)).toMatch(/"x",\s*DATASET \d+ "\/g\/records"/);
    }
    expect(nested).toHaveLength(2);
  });

  test('goes on in a compacted file', async () => {
    const path = join(folder, 'more.h5');
    const expected = await make(path);
    const compacted = join(folder, 'more-compacted.h5');
    await compact(path, compacted);
    const file = await File.open(compacted, { mode: 'r+' });
    file.dataset('refs').write(['/rows', '/g/inner'] as never, { start: [2], count: [2] });
    file.dataset('text').write(['5'] as never, { start: [4], count: [1] });
    await file.close();
    const now = await contents(compacted, ['refs', 'text']);
    expect(now).toEqual({
      refs: ['/g', '/refs', '/rows', '/g/inner'],
      text: [...(expected.text as string[]).slice(0, 4), '5'],
    });
  });
});
