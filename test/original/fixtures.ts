import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Dataset, type File, Group } from 'h5log';
import { handleOf } from '../../src/api/handle.ts';
import type { FullType } from '../../src/dtype/model.ts';

// Files that the original wrote, each with what was written: test/fixtures/original.
export const folder = new URL('../fixtures/original/', import.meta.url).pathname;

export interface Expected {
  readonly datasets: Readonly<Record<string, { shape: number[]; maxshape: (number | null)[]; hex: string }>>;
  readonly attributes: readonly { object: string; name: string; shape: number[]; hex: string }[];
}

/** Fixtures that the original reads, by its connector or (those with subfiles) by its converter; and those that it cannot read. */
export const readable = listed('');
export const misread = listed('misread');
/** Their data is in files beside them. */
export const withSubfiles = readable.filter((name) => name.startsWith('subfile'));

function listed(part: string): string[] {
  return readdirSync(join(folder, part))
    .filter((name) => name.endsWith('.h5'))
    .map((name) => join(part, name));
}

export function expectedOf(name: string): Expected {
  return JSON.parse(readFileSync(join(folder, name.replace(/\.h5$/, '.expected.json')), 'utf8'));
}

export const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** Expected values are little-endian whatever the file's byte order. */
export function littleEndian(bytes: Uint8Array, dtype: unknown): Uint8Array {
  const type = dtype as FullType;
  if (typeof dtype === 'string' || !('order' in type) || type.order !== 'big') return bytes;
  const out = bytes.slice();
  for (let at = 0; at < out.length; at += type.size) out.subarray(at, at + type.size).reverse();
  return out;
}

export interface Contents {
  readonly datasets: Record<string, unknown>;
  readonly attributes: Record<string, unknown>;
}

/** Every dataset with its contents, every attribute with its bytes. */
export function contentsOf(file: File): Contents {
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
  const note = (object: Group | Dataset): void => {
    for (const name of object.attributes.keys()) {
      const { session, node } = handleOf(object);
      const parts = session.structure.describeAttribute(node, session.names.stored(name));
      const shape = object.attributes.describe(name)?.shape;
      attributes[`${object.path} ${name}`] = { shape, hex: parts && hex(littleEndian(parts.data, parts.dtype)) };
    }
  };
  visit(file);
  return { datasets, attributes };
}

/** The same from what is known of a fixture. */
export function contentsExpected({ datasets, attributes }: Expected): Contents {
  return {
    datasets: Object.fromEntries(
      Object.entries(datasets).map(([path, { shape, maxshape, hex: bytes }]) => [
        path,
        { shape, maxshape, hex: bytes },
      ]),
    ),
    attributes: Object.fromEntries(
      attributes.map(({ object, name, shape, hex: bytes }) => [`${object} ${name}`, { shape, hex: bytes }]),
    ),
  };
}
