import { memoryStorage } from 'h5log/storage';
import { describe, expect, test } from 'vitest';
import { ObjectNode } from '../../../src/hdf5/graph/object-node.ts';
import { encodeLink } from '../../../src/hdf5/messages/link.ts';
import * as MESSAGE from '../../../src/hdf5/messages/message-types.ts';
import type { RawMessage } from '../../../src/hdf5/read/object-header.ts';
import { File } from '../../../src/index.ts';

const rawLink = (name: string | Uint8Array, order: number): RawMessage => {
  const text = typeof name === 'string' ? name : 'x'.repeat(name.length);
  const body = encodeLink(text, order, { kind: 'hard', address: 1000 + order });
  if (typeof name !== 'string') body.set(name, body.length - 8 - name.length);
  return { type: MESSAGE.link, flags: 0, order: 0, body, offset: 100 * order, chunk: 0 };
};

const groupOf = (...names: (string | Uint8Array)[]): ObjectNode => {
  const node = new ObjectNode('group', 96);
  node.unparsed = names.map(rawLink);
  return node;
};

describe('links that nobody has asked for', () => {
  test('one is found by its name, and is the same when all are listed', () => {
    const group = groupOf('b', 'größe', 'a', '日', `${'long'.repeat(100)}`);
    const one = group.link('größe');
    expect(one?.target).toEqual({ kind: 'hard', address: 1001 });
    expect(group.link('größe')).toBe(one);
    expect(group.link('long'.repeat(100))?.order).toBe(4);
    expect(group.link('c')).toBeUndefined();
    expect(group.link('grö')).toBeUndefined();
    expect([...group.links.keys()]).toEqual(['b', 'größe', 'a', '日', 'long'.repeat(100)]);
    expect(group.links.get('größe')).toBe(one);
    expect(group.link('日')).toBe(group.links.get('日'));
  });

  test('names that are no UTF-8 are found as they are shown, and half a character finds nothing', () => {
    const group = groupOf(Uint8Array.of(0x63, 0xe9), '\ufffd');
    expect(group.link('\ud800')).toBeUndefined();
    expect(group.link('c\ufffd')?.order).toBe(0);
    expect(group.link('\ufffd')?.order).toBe(1);
  });

  test('whoever looks for many of them has all parsed, once', () => {
    const group = groupOf(...Array.from({ length: 100 }, (_, i) => `d${i}`));
    for (let i = 0; i < 16; i++) expect(group.link(`d${i}`)?.order).toBe(i);
    expect(group.unparsed).not.toBeNull();
    expect(group.link('d50')?.order).toBe(50);
    expect(group.unparsed).toBeNull();
    expect(group.link('e')).toBeUndefined();
  });

  test('two of one name are an error for whoever lists them', () => {
    const group = groupOf('a', 'b', 'a');
    expect(group.link('b')?.order).toBe(1);
    expect(() => group.links).toThrow(
      expect.objectContaining({ code: 'FORMAT', message: expect.stringContaining('two links named a') }),
    );
  });

  test('a file with many links shows what it shows with few, to readers and to writers', async () => {
    const storage = memoryStorage();
    const file = await File.create(storage);
    const names = Array.from({ length: 300 }, (_, i) => `${i % 2 ? 'dätaset' : 'd'} ${(i * 7919) % 300}`);
    for (const [i, name] of names.entries())
      file.createDataset(name, { dtype: 'int32', shape: [1] }).write(Int32Array.of(i));
    await file.close();
    for (const mode of ['r', 'r+'] as const) {
      const again = await File.open(storage, { mode });
      expect(await again.dataset(names[77] as string).read()).toEqual(Int32Array.of(77));
      expect(again.get('d 1000')).toBeUndefined();
      expect(again.has(names[299] as string)).toBe(true);
      expect([...again.keys()]).toEqual(names);
      expect(await again.dataset(names[299] as string).read()).toEqual(Int32Array.of(299));
      await again.close();
    }
  });
});
