import { mkdirSync, readdirSync, readFileSync, readlinkSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Dataset, File, Group } from 'h5log';
import { blobStorage, memoryStorage } from 'h5log/storage';
import { compact, diff, list, verify } from 'h5log/tools';
import { beforeEach, expect, test } from 'vitest';
import { temporaryDirectory } from '../temporary.ts';

let folder: string;
const at = (name: string): string => join(folder, name);
const code = (expected: string) => expect.objectContaining({ name: 'H5LogError', code: expected });

/** A file with links to `there.h5`, which has data, a group and a soft link. */
beforeEach(() => {
  folder = temporaryDirectory();
  const there = File.createSync(at('there.h5'));
  there.createDataset('group/values', { dtype: 'int32', shape: [4], attributes: { unit: 'm' } }).write([1, 2, 3, 4]);
  there.createSoftLink('soft', '/group/values');
  there.createDatatype('type', 'float32');
  there.closeSync();
  const here = File.createSync(at('here.h5'));
  here.createExternalLink('values', 'there.h5', '/group/values');
  here.createExternalLink('group', 'there.h5', 'group');
  here.createExternalLink('soft', 'there.h5', '/soft');
  here.createExternalLink('nothing', 'there.h5', '/nothing');
  here.createExternalLink('type', 'there.h5', '/type');
  here.createExternalLink('missing', 'missing.h5', '/');
  here.createSoftLink('through', '/group/values');
  here.createGroup('inside/own');
  here.closeSync();
});

test('external links are followed, on every way to an object', async () => {
  const file = await File.open(at('here.h5'));
  for (const path of ['values', '/group/values', 'group/values', 'soft', 'through']) {
    const dataset = file.dataset(path, 'int32');
    expect(await dataset.read(), path).toEqual(Int32Array.of(1, 2, 3, 4));
    expect(dataset.readSync({ start: [1], count: [2] }), path).toEqual(Int32Array.of(2, 3));
    expect(dataset.attributes.get('unit')).toBe('m');
    expect(file.has(path)).toBe(true);
  }
  // An object has the path that it has in its own file.
  expect(file.dataset('through').path).toBe('/group/values');
  expect(file.group('group').path).toBe('/group');
  expect(file.group('group').dataset('values').size).toBe(4);
  expect(file.group('group').get('/soft')).toBeDefined();
  expect(file.datatype('type').dtype).toBe('float32');
  for (const path of ['nothing', 'missing', 'missing/x', 'group/nothing']) {
    expect(file.get(path), path).toBeUndefined();
    expect(file.has(path), path).toBe(false);
  }
  expect(Object.fromEntries([...file.children()].map(([name, child]) => [name, child?.kind]))).toEqual({
    values: 'dataset',
    group: 'group',
    soft: 'dataset',
    nothing: undefined,
    type: undefined,
    missing: undefined,
    through: 'dataset',
    inside: 'group',
  });
  expect([...file.links()].slice(0, 2)).toEqual([
    { name: 'values', kind: 'external', object: 'dataset', target: '/group/values', file: 'there.h5' },
    { name: 'group', kind: 'external', object: 'group', target: 'group', file: 'there.h5' },
  ]);
  await file.close();
});

test('files behind links close with the file', () => {
  const open = (): number =>
    readdirSync('/proc/self/fd').filter((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`).startsWith(folder);
      } catch {
        return false;
      }
    }).length;
  const file = File.openSync(at('here.h5'));
  expect(open()).toBe(1);
  file.dataset('values').readSync();
  file.dataset('soft').readSync();
  expect(open()).toBe(2);
  file.closeSync();
  expect(open()).toBe(0);
});

test('what is behind an external link can only be read', () => {
  const file = File.openSync(at('here.h5'), { mode: 'r+' });
  const values = file.dataset('values', 'int32');
  const group = file.group('group');
  const refused = [
    () => values.write([1, 2, 3, 4]),
    () => values.resize([5]),
    () => values.append([1]),
    () => values.attributes.set('x', 1),
    () => values.attributes.delete('unit'),
    () => group.createGroup('x'),
    () => group.delete('values'),
    () => file.createGroup('group/new'),
    () => file.createDataset('group/new', { dtype: 'int8', shape: [] }),
    () => file.createDataset('/group/deep/new', { dtype: 'int8', shape: [] }),
    () => file.createHardLink('hard', 'values'),
    () => file.createSoftLink('group/link', '/x'),
    () => file.delete('group/values'),
    () => file.move('group/values', 'values2'),
    () => file.move('inside', 'group/inside'),
  ];
  for (const change of refused) expect(change, String(change)).toThrow(code('READ_ONLY'));
  expect(() => group.createGroup('x')).toThrow(/there\.h5 was opened through an external link/);
  // The links themselves belong to the file.
  file.move('values', 'inside/values');
  file.delete('soft');
  file.closeSync();
  const again = File.openSync(at('here.h5'));
  expect(again.dataset('inside/values').readSync()).toEqual(Int32Array.of(1, 2, 3, 4));
  expect([...again.keys()]).not.toContain('soft');
  again.closeSync();
});

test('external: false keeps other files closed, and so does a storage without a folder', async () => {
  const opened = [
    File.openSync(at('here.h5'), { external: false }),
    File.openSync(memoryStorage(readFileSync(at('here.h5')))),
    await File.open(new Blob([readFileSync(at('here.h5'))])),
  ];
  for (const file of opened) {
    for (const path of ['values', 'group/values', 'through', 'missing', '/group'])
      expect(() => file.get(path), path).toThrow(code('UNSUPPORTED'));
    expect([...file.children()].filter(([, child]) => child).map(([name]) => name)).toEqual(['inside']);
    expect([...file.links()]).toHaveLength(8);
    await file.close();
  }
});

test('a function finds other files where there is no folder: for a Blob, a URL, or bytes in memory', async () => {
  const asked: string[] = [];
  const openExternal = (name: string) => {
    asked.push(name);
    return name === 'missing.h5' ? null : memoryStorage(readFileSync(at(name)));
  };
  const file = await File.open(new Blob([readFileSync(at('here.h5'))]), { openExternal, lazy: true });
  await file.load('/', { depth: 1 });
  for (const path of ['values', 'group/values', 'soft', 'through'])
    expect(await file.dataset(path, 'int32').read(), path).toEqual(Int32Array.of(1, 2, 3, 4));
  expect(file.get('missing')).toBeUndefined();
  // Each file is opened once; one that is missing is looked for again.
  expect(new Set(asked)).toEqual(new Set(['there.h5', 'missing.h5']));
  expect(asked.filter((name) => name === 'there.h5')).toHaveLength(1);
  await file.close();
  const waiting = await File.open(new Blob([readFileSync(at('here.h5'))]), {
    openExternal: (name) => blobStorage(new Blob([readFileSync(at(name))])),
  });
  expect(() => waiting.get('values')).toThrow(code('UNSUPPORTED'));
  await waiting.close();
  await expect(File.open(at('here.h5'), { openExternal: 'yes' as never })).rejects.toThrow(code('OPTION'));
});

test('links in a circle lead nowhere', () => {
  for (const [from, to] of [
    ['one.h5', 'two.h5'],
    ['two.h5', 'one.h5'],
  ] as const) {
    const file = File.createSync(at(from));
    file.createExternalLink('around', to, '/around');
    file.createExternalLink('next', to, '/');
    file.createExternalLink('self', from, '/self');
    file.createGroup('here');
    file.closeSync();
  }
  const file = File.openSync(at('one.h5'));
  expect(file.get('around')).toBeUndefined();
  expect(file.get('self')).toBeUndefined();
  expect(file.get('next/next/next/here')?.kind).toBe('group');
  expect(file.get(`${'next/'.repeat(16)}here`)?.kind).toBe('group');
  expect(file.get(`${'next/'.repeat(17)}here`)).toBeUndefined();
  // Back in the file where it began, which is open already.
  expect(file.group('next/next').path).toBe('/next/next');
  file.closeSync();
});

test('a file that is damaged is named', () => {
  writeFileSync(at('there.h5'), readFileSync(at('there.h5')).subarray(0, 700));
  const file = File.openSync(at('here.h5'));
  expect(() => file.get('values')).toThrow(expect.objectContaining({ code: 'FORMAT', file: at('there.h5') }));
  expect([...file.children()]).toHaveLength(8);
  file.closeSync();
});

test('names are looked for as libhdf5 does', () => {
  const make = (path: string, text: string): void => {
    const file = File.createSync(path);
    file.attributes.set('name', text);
    file.closeSync();
  };
  for (const name of ['a', 'b', 'elsewhere']) mkdirSync(at(name));
  make(at('elsewhere/target.h5'), 'absolute');
  make(at('a/target.h5'), 'beside');
  make(at('b/only.h5'), 'beside the real file');
  const linking = (path: string, target: string): unknown => {
    const file = File.createSync(path);
    file.createExternalLink('x', target, '/');
    file.closeSync();
    return nameBehind(path);
  };
  const nameBehind = (path: string): unknown => {
    const file = File.openSync(path);
    const found = file.get('x');
    const name = found instanceof Group ? found.attributes.get('name') : undefined;
    file.closeSync();
    return name;
  };
  expect(linking(at('a/1.h5'), at('elsewhere/target.h5'))).toBe('absolute');
  expect(linking(at('a/2.h5'), 'target.h5')).toBe('beside');
  expect(linking(at('a/3.h5'), '../elsewhere/target.h5')).toBe('absolute');
  // An absolute name where nothing is counts by its last part.
  expect(linking(at('a/4.h5'), '/no/such/folder/target.h5')).toBe('beside');
  expect(linking(at('b/5.h5'), 'only.h5')).toBe('beside the real file');
  renameSync(at('b/5.h5'), at('b/real.h5'));
  symlinkSync(at('b/real.h5'), at('a/link.h5'));
  expect(nameBehind(at('a/link.h5'))).toBe('beside the real file');
  // Neither a folder nor what would never end is a file.
  expect(linking(at('a/6.h5'), '/dev/zero')).toBeUndefined();
  expect(linking(at('a/7.h5'), at('elsewhere'))).toBeUndefined();
  const here = process.cwd();
  process.chdir(at('elsewhere'));
  try {
    expect(linking(at('b/8.h5'), 'target.h5')).toBe('absolute');
  } finally {
    process.chdir(here);
  }
});

test('a reader that moves on sees what others have written behind links', () => {
  const writer = File.openSync(at('there.h5'), { mode: 'r+' });
  const file = File.openSync(at('here.h5'));
  const values = file.dataset('values', 'int32') as Dataset<'int32'>;
  writer.dataset('group/values').write([9, 9, 9, 9]);
  writer.flushSync();
  expect(values.readSync()).toEqual(Int32Array.of(1, 2, 3, 4));
  expect(file.refreshSync()).toBe(true);
  expect(values.readSync()).toEqual(Int32Array.of(9, 9, 9, 9));
  expect(file.refreshSync()).toBe(false);
  writer.closeSync();
  file.closeSync();
});

test('tools leave external links alone', async () => {
  writeFileSync(at('there.h5'), 'no file at all');
  const links = (await list(at('here.h5'))).objects.filter(({ kind }) => kind === 'external link');
  expect(links).toHaveLength(6);
  expect((await verify(at('here.h5'))).sound).toBe(true);
  expect((await diff(at('here.h5'), at('here.h5'))).same).toBe(true);
  await compact(at('here.h5'), at('copy.h5'));
  expect((await diff(at('here.h5'), at('copy.h5'))).same).toBe(true);
});
