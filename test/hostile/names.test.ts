import { describe, expect, test } from 'vitest';
import { File } from '../../src/api/file.ts';
import { memoryStorage } from '../../src/storage/memory.ts';
import { attribute, Craft, GROUP, hard, header, INT32, pack, rootWith, SCALAR, soft } from './craft.ts';
import { stored } from './samples.ts';

const open = (bytes: Uint8Array, mode: 'r' | 'r+' = 'r'): File => File.openSync(memoryStorage(bytes), { mode });
const SPECIAL = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'then', '..', ' ', '\ufeffa', 'a'];

describe('names from a file', () => {
  test('never reach a prototype', () => {
    const craft = new Craft();
    const group = craft.put(header(GROUP));
    const field = (name: string, offset: number): Uint8Array => pack(name, [1, 0], [1, offset], INT32);
    const fields = SPECIAL.map((name, i) => field(name, 4 * i));
    const type = pack([1, 0x36], [3, SPECIAL.length], [4, 4 * SPECIAL.length], ...fields);
    const data = pack(...SPECIAL.map((_, i) => [4, i] as const));
    const attributes = SPECIAL.map((name) => attribute(name, INT32, SCALAR, pack([4, 7])));
    const links = SPECIAL.map((name) => hard(name, group));
    const file = open(
      craft.done(craft.put(header(GROUP, ...links, ...attributes, attribute('point', type, SCALAR, data)))),
    );
    expect([...file.keys()].sort()).toEqual([...SPECIAL].sort());
    expect([...file.attributes.keys()].sort()).toEqual([...SPECIAL, 'point'].sort());
    for (const name of SPECIAL) {
      expect(file.get(name)?.kind).toBe('group');
      expect(file.attributes.get(name)).toBe(7);
    }
    const point = file.attributes.get('point') as Record<string, unknown>;
    expect(Object.getPrototypeOf(point)).toBe(Object.prototype);
    expect(Object.entries(point)).toEqual(SPECIAL.map((name, i) => [name, i]));
    expect(({} as Record<string, unknown>).a).toBeUndefined();
    expect(file.get('prototype')).toBeUndefined();
    expect(file.attributes.get('valueOf')).toBeUndefined();
  });

  test('may be no UTF-8', () => {
    const file = open(
      rootWith(hard(Uint8Array.of(0x61, 0xff), 48), attribute(Uint8Array.of(0xe4), INT32, SCALAR, pack([4, 1]))),
    );
    expect([...file.keys()]).toEqual(['a\ufffd']);
    expect([...file.attributes]).toEqual([['\ufffd', 1]]);
  });

  test('may hold a slash, which no path can name', () => {
    const file = open(rootWith(soft('a/b', '/')));
    expect([...file.children()].map(([name, child]) => [name, child?.kind])).toEqual([['a/b', 'group']]);
    expect(file.get('a/b')).toBeUndefined();
  });
});

describe('groups in a circle', () => {
  test('have paths that end', () => {
    const file = open(stored('references'));
    expect(file.get('g/up/g/up/g')?.kind).toBe('group');
    expect(file.group('g').attributes.get('object')).toMatch(/^.(data|alias)$/);
  });

  test('are removed without taking the root along, whatever the counts say', () => {
    const craft = new Craft();
    const size = header(GROUP, hard('up', 0)).length;
    const group = craft.reserve(size);
    const root = craft.put(header(GROUP, hard('g', group), hard('again', group)));
    craft.write(group, header(GROUP, hard('up', root)));
    // The headers count one link each; there are two.
    const storage = memoryStorage(craft.done(root));
    const file = File.openSync(storage, { mode: 'r+' });
    file.delete('g');
    file.createGroup('new');
    file.closeSync();
    const after = open(storage.bytes());
    expect([...after.keys()].sort()).toEqual(['again', 'new']);
    expect([...after.group('again/up').keys()].sort()).toEqual(['again', 'new']);
  });

  test('20,000 deep are removed', () => {
    const craft = new Craft();
    let at = craft.put(header(GROUP));
    for (let i = 0; i < 20_000; i++) at = craft.put(header(GROUP, hard('g', at)));
    const file = open(craft.done(at), 'r+');
    file.delete('g');
    file.flushSync();
    expect([...file.keys()]).toEqual([]);
  });
});
