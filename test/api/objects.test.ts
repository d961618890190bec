import { join } from 'node:path';
import { File, T } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';
import { temporaryDirectory } from '../temporary.ts';
import { thrown } from './refusal.ts';

test('space and pipeline of a logged dataset', () => {
  const file = File.createSync(memoryStorage());
  const x = file.createDataset('x', { dtype: 'int16', shape: [4], filters: ['shuffle', { deflate: 3 }, 'fletcher32'] });
  expect(x.space).toBe('simple');
  expect(x.pipeline).toEqual([
    { id: 2, name: 'shuffle', parameters: [2], optional: true },
    { id: 1, name: 'deflate', parameters: [3], optional: true },
    { id: 3, name: 'fletcher32', parameters: [], optional: false },
  ]);
  const s = file.createDataset('s', { dtype: 'int16', shape: [] });
  expect([s.space, s.size, s.pipeline]).toEqual(['scalar', 1, []]);
});

test('names that differ in leading underscores only are different names, also inside groups', () => {
  const storage = memoryStorage();
  const file = File.createSync(storage);
  const write = (path: string): void => file.createDataset(path, { dtype: 'int8', shape: [] }).write(path.length);
  for (const path of ['g/_y', '_x']) write(path);
  for (const path of ['g/__y', 'g/y', '__x', 'x']) {
    expect([path, file.has(path)]).toEqual([path, false]);
    expect(thrown(() => file.delete(path)).code).toBe('NOT_FOUND');
    write(path);
  }
  file.closeSync();
  const reader = File.openSync(storage);
  for (const path of ['g/_y', '_x', 'g/__y', 'g/y', '__x', 'x'])
    expect(reader.dataset(path).readSync()[0]).toBe(path.length);
  expect(reader.has('g/___y')).toBe(false);
});

describe('requireGroup and requireDataset', () => {
  test.each(['log', 'native'] as const)('make objects, and find them when the program runs again (%s)', (connector) => {
    const path = join(temporaryDirectory(), 'r.h5');
    for (let run = 1; run <= 3; run++) {
      const file = File.openSync(path, { mode: 'a', connector });
      expect(file.requireGroup('a/b').path).toBe('/a/b');
      const options = { dtype: 'float32', shape: [0, 2], maxShape: [null, 2], chunks: [2, 2] } as const;
      const x = file.group('a').requireDataset('x', options);
      x.append(Float32Array.of(run, run));
      expect(x.shape).toEqual([run, 2]);
      file.closeSync();
    }
  });

  test('refuse what is there and differs', () => {
    const file = File.createSync(memoryStorage());
    file.createDataset('x', { dtype: 'int8', shape: [3, 2], maxShape: [null, 2] });
    const code = (options: object): string =>
      thrown(() => file.requireDataset('x', { dtype: 'int8', shape: [3, 2], maxShape: [null, 2], ...options } as never))
        .code;
    expect(code({ dtype: 'int16' })).toBe('DTYPE');
    expect(code({ shape: [3, 1], maxShape: [null, 1] })).toBe('SHAPE');
    expect(code({ shape: [4, 2] })).toBe('SHAPE');
    expect(code({ shape: [3] })).toBe('SHAPE');
    expect(code({ maxShape: [3, 2] })).toBe('SHAPE');
    expect(code({ maxshape: [3, 2] })).toBe('OPTION');
    expect(file.requireDataset('x', { dtype: 'int8', shape: [1, 2], maxShape: [null, 2] }).shape).toEqual([3, 2]);
    expect(thrown(() => file.requireGroup('x')).code).toBe('EXISTS');
    file.createGroup('g');
    expect(thrown(() => file.requireDataset('g', { dtype: 'int8', shape: [1] })).code).toBe('EXISTS');
  });

  test('find things in a file that is only read', () => {
    const storage = memoryStorage();
    const file = File.createSync(storage);
    file.createDataset('g/x', { dtype: 'int8', shape: [3] });
    file.closeSync();
    const reader = File.openSync(storage);
    expect(reader.requireGroup('g').requireDataset('x', { dtype: 'int8', shape: [3] }).shape).toEqual([3]);
    expect(thrown(() => reader.requireGroup('h')).code).toBe('READ_ONLY');
  });
});

describe('committed datatypes', () => {
  test('are made, listed and got, with attributes', () => {
    const storage = memoryStorage();
    const file = File.createSync(storage);
    const Point = T.compound({ x: 'float64', y: 'float64' });
    file.createDatatype('types/Point', Point);
    file.datatype('types/Point').attributes.set('units', 'm');
    expect(thrown(() => file.createDatatype('types/Point', 'int8')).code).toBe('EXISTS');
    expect(thrown(() => file.createDatatype('types/Bad', 'int9' as 'int8')).code).toBe('DTYPE');
    file.closeSync();
    const again = File.openSync(storage);
    const type = again.group('types').datatype('Point');
    expect([type.kind, type.path]).toEqual(['datatype', '/types/Point']);
    expect(type.dtype).toEqual(Point);
    expect(type.attributes.get('units')).toBe('m');
    expect([...again.group('types').links()]).toEqual([{ name: 'Point', kind: 'hard', object: 'datatype' }]);
    expect([...again.group('types').keys()]).toEqual(['Point']);
    expect(thrown(() => again.datatype('types')).code).toBe('NOT_FOUND');
    expect(thrown(() => again.datatype('none')).code).toBe('NOT_FOUND');
  });
});

test('links are listed as they are', () => {
  const storage = memoryStorage();
  const file = File.createSync(storage);
  file.createGroup('g');
  file.createDataset('d', { dtype: 'int8', shape: [1] });
  file.createSoftLink('s', '/d');
  file.createSoftLink('nowhere', '/_none');
  file.createExternalLink('e', 'other.h5', '/x');
  file.closeSync();
  expect([...File.openSync(storage).links()]).toEqual([
    { name: 'g', kind: 'hard', object: 'group' },
    { name: 'd', kind: 'hard', object: 'dataset' },
    { name: 's', kind: 'soft', object: 'dataset', target: '/d' },
    { name: 'nowhere', kind: 'soft', target: '/_none' },
    { name: 'e', kind: 'external', target: '/x', file: 'other.h5' },
  ]);
});

test('a NULL dataspace is told from a scalar', () => {
  const path = join(temporaryDirectory(), 'n.h5');
  const log = File.createSync(path, { publish: 'never' });
  log.createDataset('x', { dtype: 'int8', shape: [2] });
  log.closeSync();
  // What other programs see of a dataset of a log has no elements.
  const file = File.openSync(path, { connector: 'native' });
  const x = file.dataset('x');
  expect([x.space, x.shape, x.size]).toEqual(['null', [], 0]);
  expect(String(x)).toBe('Dataset /x int8 null of n.h5');
  file.closeSync();
});
