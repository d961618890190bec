import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { File, Group } from 'h5log';
import { describe, expect, test } from 'vitest';
import type { FullType } from '../../src/dtype/model.ts';

// Files that the original wrote, each with what was written: test/fixtures/original.
const folder = new URL('../fixtures/original/', import.meta.url).pathname;

interface Expected {
  readonly datasets: Readonly<Record<string, { shape: number[]; maxshape: (number | null)[]; hex: string }>>;
  readonly attributes: readonly { object: string; name: string; shape: number[]; hex: string }[];
}

const expectedOf = (path: string): Expected =>
  JSON.parse(readFileSync(path.replace(/\.h5$/, '.expected.json'), 'utf8'));

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** Expected values are little-endian whatever the file's byte order. */
function littleEndian(bytes: Uint8Array, dtype: unknown): Uint8Array {
  const type = dtype as FullType;
  if (typeof dtype === 'string' || !('order' in type) || type.order !== 'big') return bytes;
  const out = bytes.slice();
  for (let at = 0; at < out.length; at += type.size) out.subarray(at, at + type.size).reverse();
  return out;
}

/** Every dataset with its contents, every attribute with its bytes. */
function contentsOf(file: File): { datasets: Record<string, unknown>; attributes: Record<string, unknown> } {
  const datasets: Record<string, unknown> = {};
  const attributes: Record<string, unknown> = {};
  const visit = (group: Group): void => {
    note(group);
    for (const [, child] of group.children()) {
      if (child instanceof Group) visit(child);
      else if (child) {
        note(child);
        const raw = littleEndian(child.readSync(undefined, { raw: true }), child.dtype);
        datasets[child.path] = { shape: child.shape, maxshape: child.maxShape, hex: hex(raw) };
      }
    }
  };
  const note = (object: Group | ReturnType<Group['dataset']>): void => {
    for (const name of object.attributes.keys()) {
      const { session, node } = object;
      const parts = session.structure.describeAttribute(node, session.names.stored(name));
      const shape = object.attributes.describe(name)?.shape;
      attributes[`${object.path} ${name}`] = { shape, hex: parts && hex(littleEndian(parts.data, parts.dtype)) };
    }
  };
  visit(file);
  return { datasets, attributes };
}

const names = readdirSync(folder).filter((name) => name.endsWith('.h5') && !name.startsWith('subfile'));

describe('a file of the original', () => {
  for (const name of names) {
    test(`${name} reads as it was written`, () => {
      const path = join(folder, name);
      const expected = expectedOf(path);
      const file = File.openSync(path);
      const found = contentsOf(file);
      file.closeSync();
      const datasets = Object.fromEntries(
        Object.entries(expected.datasets).map(([key, { shape, maxshape, hex: bytes }]) => [
          key,
          { shape, maxshape, hex: bytes },
        ]),
      );
      expect(found.datasets).toEqual(datasets);
      for (const { object, name: attribute, shape, hex: bytes } of expected.attributes) {
        expect(found.attributes[`${object} ${attribute}`], `${object} ${attribute}`).toEqual({ shape, hex: bytes });
      }
      expect(Object.keys(found.attributes)).toHaveLength(expected.attributes.length);
    });
  }
  test.each(['deflate_1r', 'encfull_1r', 'passthru_ndims_2r'])(
    '%s, which the original cannot read itself, reads as written',
    (name) => {
      const path = join(folder, 'misread', `${name}.h5`);
      const file = File.openSync(path);
      for (const [dataset, { hex: bytes }] of Object.entries(expectedOf(path).datasets)) {
        expect(hex(file.dataset(dataset).readSync(undefined, { raw: true })), dataset).toBe(bytes);
      }
      file.closeSync();
    },
  );

  test('merge_enc_mix_2r, which cannot be decoded with certainty, is refused', () => {
    const path = join(folder, 'misread', 'merge_enc_mix_2r.h5');
    const file = File.openSync(path);
    for (const dataset of Object.keys(expectedOf(path).datasets)) {
      expect(() => file.dataset(dataset).readSync(), dataset).toThrow(expect.objectContaining({ code: 'FORMAT' }));
    }
    file.closeSync();
  });

  test('there are 44 of them', () => {
    expect(names.length).toBeGreaterThanOrEqual(44);
  });
});
