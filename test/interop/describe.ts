import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';
import { type DType, fullType } from '../../src/dtype/model.ts';
import { committedType } from '../../src/hdf5/graph/dataset-header.ts';
import type { ObjectNode } from '../../src/hdf5/graph/object-node.ts';
import type { Dataspace } from '../../src/hdf5/messages/dataspace.ts';
import type { Structure } from '../../src/hdf5/write/structure.ts';
import type { Io } from '../../src/storage/io.ts';
import { runSync } from '../oracles.ts';

/** A type, an element: nested lists of text and numbers, in the same words as describe.py uses. */
export type Plain = string | number | boolean | null | readonly Plain[];
export type AttributeFacts = [name: string, type: Plain, shape: readonly number[] | null, values: readonly Plain[]];

export interface DatasetFacts {
  type: Plain;
  shape: readonly number[] | null;
  max: readonly (number | null)[] | null;
  chunk: readonly number[] | null;
  filters: readonly number[];
  values: readonly Plain[] | null;
}

/** What there is to know about one object; `same` if it was met before under another path. */
export interface Facts {
  same?: string;
  kind?: string;
  count?: number;
  links?: [name: string, kind: string, ...target: string[]][];
  attributes?: AttributeFacts[];
  dataset?: DatasetFacts;
  type?: Plain;
}
export type Description = Record<string, Facts>;

const SCRIPT = fileURLToPath(new URL('describe.py', import.meta.url));

/** What h5py sees in each of some files; without data, datasets have no values. */
export function h5pyDescribes(paths: readonly string[], data = true): Description[] {
  return JSON.parse(runSync('python', [SCRIPT, data ? 'data' : 'structure', ...paths])) as Description[];
}

export function h5pyDescribe(path: string, data = true): Description {
  return h5pyDescribes([path], data)[0] as Description;
}

/** libhdf5 does not tell the true sizes of records with variable-length strings, see describe.py. */
function holdsVariable(dtype: DType): boolean {
  const type = fullType(dtype);
  if (type.class === 'compound') return type.fields.some((field) => holdsVariable(field.dtype));
  return type.class === 'array' ? holdsVariable(type.base) : type.class === 'string' && type.variable;
}

export function plainType(dtype: DType): Plain {
  const type = fullType(dtype);
  switch (type.class) {
    case 'integer':
      return ['integer', type.size, type.size > 1 ? type.order : 'little', type.signed, type.precision, type.bitOffset];
    case 'float': {
      const fields = [type.signBit, type.exponentAt, type.exponentBits, type.mantissaAt, type.mantissaBits];
      return ['float', type.size, type.order, type.precision, ...fields, type.exponentBias];
    }
    case 'string':
      return ['string', type.variable ? 'variable' : type.size, type.pad, type.charset];
    case 'bitfield':
      return ['bitfield', type.size];
    case 'opaque':
      return ['opaque', type.size, type.tag];
    case 'compound': {
      const known = !holdsVariable(type);
      const fields = type.fields.map(({ name, offset, dtype }) => [name, known ? offset : -1, plainType(dtype)]);
      return ['compound', known ? type.size : -1, fields];
    }
    case 'reference':
      return ['reference', type.to];
    case 'enum':
      return ['enum', plainType(type.base), type.entries.map(([name, value]) => [name, String(value)])];
    case 'vlen':
      return ['vlen', plainType(type.base)];
    case 'array':
      return ['array', [...type.shape], plainType(type.base)];
  }
}

/** One element as {@link decodeValues} gives it. */
export function plainValue(dtype: DType, value: unknown): Plain {
  const type = fullType(dtype);
  switch (type.class) {
    case 'float':
      return floatBits(Number(value));
    case 'integer':
    case 'bitfield':
    case 'enum':
      return String(typeof value === 'boolean' ? Number(value) : value);
    case 'string':
      return value as string;
    case 'reference':
      // Of a region, what h5py tells: the object that it lies in.
      return typeof value === 'object' && value !== null ? (value as { path: string }).path : ((value ?? '') as string);
    case 'opaque':
      return Buffer.from(value as Uint8Array).toString('hex');
    case 'compound':
      return type.fields.map(({ name, dtype: inner }) => [
        name,
        plainValue(inner, (value as Record<string, unknown>)[name]),
      ]);
    case 'vlen':
    case 'array':
      return Array.from(value as ArrayLike<unknown>, (item) => plainValue(type.base, item));
  }
}

function floatBits(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleBE(value);
  return bytes.toString('hex');
}

/** The elements of an attribute's value: null for none, one for a scalar, else a list. */
export function plainElements(dtype: DType, space: Dataspace, value: unknown): Plain[] {
  if (space.kind === 'null') return [];
  if (space.kind === 'scalar') return [plainValue(dtype, value)];
  return Array.from(value as ArrayLike<unknown>, (item) => plainValue(dtype, item));
}

const shapeOf = (space: Dataspace): readonly number[] | null =>
  space.kind === 'simple' ? space.shape : space.kind === 'null' ? null : [];

/** What our own reader sees: everything but the data of datasets. */
export function* ourDescription(structure: Structure): Io<Description> {
  const objects: Description = {};
  const seen = new Map<ObjectNode, string>();
  const todo: [string, ObjectNode][] = [['/', structure.root]];
  for (const [where, node] of todo) {
    const before = seen.get(node);
    if (before !== undefined) {
      objects[where] = { same: before };
      continue;
    }
    seen.set(node, where);
    const facts: Facts = { count: node.linkCount, kind: node.kind };
    objects[where] = facts;
    if (node.kind === 'group') {
      facts.links = [];
      for (const link of node.links.values()) {
        const { target } = link;
        if (target.kind === 'hard') facts.links.push([link.name, 'hard']);
        else if (target.kind === 'soft') facts.links.push([link.name, 'soft', target.path]);
        else if (target.kind === 'external') facts.links.push([link.name, 'external', target.file, target.path]);
        const child = yield* structure.loader.follow(link);
        if (child) todo.push([`${where === '/' ? '' : where}/${link.name}`, child]);
      }
    }
    facts.attributes = [];
    for (const name of node.attributes.keys()) {
      const parts = structure.describeAttribute(node, name);
      if (!parts) continue;
      const values = plainElements(parts.dtype, parts.space, yield* structure.attribute(node, name));
      facts.attributes.push([name, plainType(parts.dtype), shapeOf(parts.space), values]);
    }
    if (node.kind === 'dataset') facts.dataset = datasetFacts(structure, node);
    if (node.kind === 'datatype') facts.type = plainType(committedType(node));
  }
  return objects;
}

function datasetFacts(structure: Structure, node: ObjectNode): DatasetFacts {
  const { dtype, space, layout, filters } = structure.dataset(node);
  return {
    type: plainType(dtype),
    shape: shapeOf(space),
    max: space.kind === 'simple' ? space.maxShape : null,
    chunk: layout?.kind === 'chunked' ? layout.chunk : null,
    filters: filters.map(({ id }) => id),
    values: null,
  };
}

/** How many objects and values a description holds, for the line that a suite prints. */
export class Tally {
  files = 0;
  objects = 0;
  values = 0;

  add(description: Description): void {
    this.files++;
    for (const facts of Object.values(description)) {
      this.objects++;
      for (const [, , , values] of facts.attributes ?? []) this.values += values.length;
      this.values += facts.dataset?.values?.length ?? 0;
    }
  }

  get figures(): { files: number; objects: number; values: number } {
    return { files: this.files, objects: this.objects, values: this.values };
  }

  toString(): string {
    return `${this.files} files, ${this.objects} objects, ${this.values} values`;
  }
}

/** Deep equality that is quick when it holds; the difference is worked out only when it does not. */
export function expectSame(actual: unknown, meant: unknown, what: string): void {
  if (!isDeepStrictEqual(actual, meant)) expect(actual, what).toEqual(meant);
}

/** Without the data of datasets, which our structural reader does not read. */
export function withoutData(description: Description): Description {
  const copy = structuredClone(description);
  for (const facts of Object.values(copy)) if (facts.dataset) facts.dataset.values = null;
  return copy;
}
