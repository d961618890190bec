// A file that is opened for writing loads what a change touches. Whatever it has not loaded must still follow when objects move:
// other links to them, references in attributes and in data, uses of committed datatypes.

import { join } from 'node:path';
import { type Dataset, File, T } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';
import { sessionOf } from '../../src/api/handle.ts';
import { count } from '../counts.ts';
import { keepInput } from '../failures.ts';
import { pythonSync, withOracle } from '../oracles.ts';
import { random, repeats, seed } from '../seed.ts';
import { temporaryDirectory } from '../temporary.ts';

const folder = temporaryDirectory();

interface Known {
  /** Number of the object that its reference leads to; null: it has none. */
  ref: number | null;
  value: number;
}

/** A file and what should be in it. Between two steps it may be closed and opened again, so that nothing of it is loaded. */
class Program {
  readonly storage = memoryStorage();
  readonly steps: string[] = [];
  readonly objects = new Map<number, Known>();
  readonly paths = new Map<string, number>();
  /** The elements of /holder, in ordinary files. */
  readonly held: (number | null)[] = [null, null, null];
  readonly connector: 'log' | 'native';
  readonly #next: () => number;
  #last = 0;
  file: File;

  constructor(connector: 'log' | 'native', from: number) {
    this.#next = random(from);
    this.connector = connector;
    this.file = File.createSync(this.storage, { connector });
    for (const path of ['/a', '/b', '/a/c']) this.#made(path, this.file.createGroup(path));
    for (let i = 0; i < 8; i++) this.create();
    if (connector === 'native') this.file.createDataset('/holder', { dtype: T.reference, shape: [3] });
    this.file.createDatatype('/type', 'int16');
    this.file.flushSync();
  }

  #made(path: string, { attributes }: { attributes: File['attributes'] }): void {
    const id = ++this.#last;
    attributes.set('id', id);
    this.objects.set(id, { ref: null, value: 0 });
    this.paths.set(path, id);
  }

  pick<V>(list: readonly V[]): V {
    return list[Math.floor(this.#next() * list.length)] as V;
  }

  #free(): string {
    const groups = ['', ...['/a', '/b', '/a/c'].filter((path) => this.paths.has(path))];
    return `${this.pick(groups)}/n${Math.floor(this.#next() * 1e6)}`;
  }

  #any(): string {
    return this.pick([...this.paths.keys()]);
  }

  at(path: string): File['attributes'] {
    const found = this.file.get(path);
    if (!found) throw new Error(`${path} is gone`);
    return found.attributes;
  }

  create(): void {
    const path = this.#free();
    this.steps.push(`create ${path}`);
    this.#made(path, this.file.createDataset(path, { dtype: 'int32', shape: [2] }));
  }

  change(): void {
    const path = this.#any();
    const value = Math.floor(this.#next() * 1000);
    this.steps.push(`change ${path}`);
    this.at(path).set('value', value);
    (this.objects.get(this.paths.get(path) as number) as Known).value = value;
  }

  refer(): void {
    const [path, to] = [this.#any(), this.#any()];
    this.steps.push(`refer ${path} to ${to}`);
    this.at(path).set('ref', to, { dtype: T.reference });
    (this.objects.get(this.paths.get(path) as number) as Known).ref = this.paths.get(to) as number;
  }

  hold(): void {
    if (this.connector === 'log') return;
    const [to, k] = [this.#any(), Math.floor(this.#next() * 3)];
    this.steps.push(`hold ${to}`);
    this.file.dataset('/holder', T.reference).write([to], { start: [k], count: [1] });
    this.held[k] = this.paths.get(to) as number;
  }

  use(): void {
    const path = this.#any();
    this.steps.push(`use the type in ${path}`);
    this.file.datatype('/type').attributes.set('used', this.steps.length);
  }

  link(): void {
    const [path, to] = [this.#free(), this.#any()];
    if (`${path}/`.startsWith(`${to}/`) || ['/a', '/b', '/a/c'].includes(to)) return;
    this.steps.push(`link ${path} to ${to}`);
    this.file.createHardLink(path, to);
    this.paths.set(path, this.paths.get(to) as number);
  }

  move(): void {
    const [path, to] = [this.#any(), this.#free()];
    if (['/a', '/b', '/a/c'].includes(path)) return;
    this.steps.push(`move ${path} to ${to}`);
    this.file.move(path, to);
    this.paths.set(to, this.paths.get(path) as number);
    this.paths.delete(path);
  }

  remove(): void {
    const path = this.#any();
    if (this.paths.size < 8 || (path === '/a' && this.#next() < 0.7)) return;
    this.steps.push(`delete ${path}`);
    this.file.delete(path);
    for (const each of [...this.paths.keys()]) if (`${each}/`.startsWith(`${path}/`)) this.paths.delete(each);
  }

  reopen(): void {
    this.steps.push('reopen');
    this.file.closeSync();
    this.file = File.openSync(this.storage, { mode: 'r+' });
  }

  flush(): void {
    this.steps.push('flush');
    this.file.flushSync();
  }

  step(): void {
    const next = this.#next();
    if (next < 0.25) this.reopen();
    else if (next < 0.35) this.flush();
    else if (next < 0.5) this.change();
    else if (next < 0.6) this.refer();
    else if (next < 0.66) this.hold();
    else if (next < 0.7) this.use();
    else if (next < 0.8) this.link();
    else if (next < 0.86) this.move();
    else if (next < 0.93) this.remove();
    else this.create();
  }

  /** Closes the file and compares what a reader sees. */
  check(): void {
    this.file.closeSync();
    const file = File.openSync(this.storage);
    const idAt = (path: unknown): unknown => (path ? file.get(path as string)?.attributes.get('id') : null);
    const live = new Set(this.paths.values());
    const expected = (id: number | null): number | null => (id !== null && live.has(id) ? id : null);
    for (const [path, id] of this.paths) {
      const { ref, value } = this.objects.get(id) as Known;
      const attributes = file.get(path)?.attributes;
      expect(attributes?.get('id'), path).toBe(id);
      expect(attributes?.get('value') ?? 0, path).toBe(value);
      if (ref !== null) expect(idAt(attributes?.get('ref')), `the reference of ${path}`).toBe(expected(ref));
    }
    if (this.connector === 'native') {
      const paths = [...file.dataset('/holder', T.reference).readSync()];
      expect(paths.map(idAt), 'the elements of /holder').toEqual(this.held.map(expected));
    }
    this.file = File.openSync(this.storage, { mode: 'r+' });
  }
}

describe('objects that are loaded on demand', () => {
  test.each(['native', 'log'] as const)('random programs on a %s file', (connector) => {
    const name = `structure on demand, ${connector}`;
    const programs = repeats(300);
    const next = random(seed(name));
    let steps = 0;
    for (let i = 0; i < programs; i++) {
      const program = new Program(connector, Math.floor(next() * 2 ** 32));
      try {
        for (let k = 0; k < 30; k++) {
          program.step();
          if (k % 10 === 9) program.check();
        }
      } catch (error) {
        keepInput('steps.txt', program.steps.join('\n'));
        throw error;
      }
      steps += program.steps.length;
    }
    count(name, { programs, steps });
  });

  test.each(['native', 'log'] as const)('a change in a %s file loads what is on the way to it', (connector) => {
    const storage = memoryStorage();
    const made = File.createSync(storage, { connector });
    for (let g = 0; g < 10; g++)
      for (let i = 0; i < 500; i++) made.createDataset(`g${g}/d${i}`, { dtype: 'int32', shape: [2] });
    made.closeSync();
    const file = File.openSync(storage, { mode: 'r+' });
    const { loader } = sessionOf(file).structure;
    expect(loader.nodes.size).toBeLessThan(20);
    file.dataset('g3/d77', 'int32').write([1, 2]);
    file.dataset('g4/d78').attributes.set('a', 1);
    file.flushSync();
    expect(loader.nodes.size).toBeLessThan(20);
    file.delete('g5');
    file.closeSync();
    const read = File.openSync(storage);
    expect([...read.dataset('g3/d77', 'int32').readSync()]).toEqual([1, 2]);
    expect(read.dataset('g4/d78').attributes.get('a')).toBe(1);
    expect([...read.keys()]).not.toContain('g5');
    expect([...read.group('g9').keys()]).toHaveLength(500);
  });

  test('tables of earlier sessions are merged without loading the datasets that they name', () => {
    const storage = memoryStorage();
    const made = File.createSync(storage);
    for (let i = 0; i < 300; i++) made.createDataset(`g/d${i}`, { dtype: 'int32', shape: [2, 1 + (i % 3)] });
    made.closeSync();
    for (let i = 0; i < 40; i++) {
      const file = File.openSync(storage, { mode: 'r+' });
      file.dataset(`g/d${i}`, 'int32').write(new Int32Array(2 * (1 + (i % 3))).fill(i));
      if (i % 7 === 6) file.delete(`g/d${i - 3}`);
      file.closeSync();
      expect(sessionOf(file).structure.loader.nodes.size).toBeLessThan(100);
    }
    const read = File.openSync(storage);
    for (let i = 0; i < 40; i++) {
      const dataset = read.get(`g/d${i}`) as Dataset<'int32'> | undefined;
      if (i % 7 === 3 && i + 3 < 40) expect(dataset).toBe(undefined);
      else expect([...(dataset?.readSync() ?? [])]).toEqual(new Array(2 * (1 + (i % 3))).fill(i));
    }
    expect(sessionOf(read).log?.tables.committed.items.length).toBeLessThan(20);
  });

  const linked = `
import h5py, sys, numpy as np
with h5py.File(sys.argv[1], 'w', libver=sys.argv[2]) as f:
    f['type'] = np.dtype('i2')
    for g in 'ab':
        for i in range(40):
            f.create_dataset(f'{g}/d{i}', data=np.arange(3.0)).attrs['id'] = f'{g}{i}'
    f['b/other'] = f['a/d7']
    f['b/deep/er/other'] = f['a/d7']
    f['a/typed'] = np.zeros(3, 'i2')
    f.create_dataset('b/typed', (3,), dtype=f['type'])
    f['b/d1'].attrs['ref'] = f['a/d7'].ref
    f['b/d2'].attrs.create('refs', [f['a'].ref, f['a/d7'].ref, f['a/d8'].ref], dtype=h5py.ref_dtype)
    f['b/d3'].attrs['region'] = f['a/d7'].regionref[1:2]
    f.create_dataset('b/held', data=[f['a/d7'].ref, f['a/d9'].ref], dtype=h5py.ref_dtype)
    f['a/d7'].make_scale('s'); f['b/d4'].dims[0].attach_scale(f['a/d7']); f['b/d5'].dims[0].attach_scale(f['a/d7'])
`;
  const checked = `
import h5py, sys
with h5py.File(sys.argv[1], 'r') as f:
    at = f['a/d7']
    assert list(at[()]) == [5, 6, 7], list(at[()])
    for other in [f['b/other'], f['b/deep/er/other'], f[f['b/d1'].attrs['ref']], f[f['b/d2'].attrs['refs'][1]], f[f['b/d3'].attrs['region']], f[f['b/held'][0]], f['b/d4'].dims[0][0]]:
        assert other == at and other.attrs['new'] == 1, other
    assert f[f['b/d2'].attrs['refs'][0]] == f['a'] and f[f['b/d2'].attrs['refs'][2]].attrs['id'] == 'a8'
    assert [f[r] for r, _ in at.attrs['REFERENCE_LIST']] == [f['b/d4'], f['b/d5']]
    assert f[f['b/held'][1]].attrs['id'] == 'a9'
    assert f['type'].attrs['new'] == 2 and f['b/typed'].id.get_type().committed()
    assert f['b/typed'].id.get_type().equal(f['type'].id)
`;
  withOracle('python', 'files of h5py', () => {
    test.each(['earliest', 'latest'])('whoever refers to an object that moves follows (libver %s)', (version) => {
      const path = join(folder, `${version}.h5`);
      pythonSync(linked, [path, version]);
      const file = File.openSync(path, { mode: 'r+' });
      file.dataset('/a/d7', 'float64').write([5, 6, 7]);
      file.dataset('/a/d7').attributes.set('new', 1, { dtype: 'int32' });
      file.flushSync();
      file.datatype('/type').attributes.set('new', 2, { dtype: 'int32' });
      file.closeSync();
      pythonSync(checked, [path]);
    });
  });
});
