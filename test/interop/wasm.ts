import h5wasm, { type Attribute, type Dataset, Group } from 'h5wasm/node';
import { expect } from 'vitest';
import { type Description, expectSame, type Plain } from './describe.ts';

const CANNOT = Symbol('h5wasm has no value for this');

/** Lists a file with h5wasm (libhdf5 2.0) and compares names, shapes and every value that it can represent. */
export async function wasmCheck(path: string, seen: Description): Promise<{ values: number; skipped: number }> {
  await h5wasm.ready;
  const file = new h5wasm.File(path, 'r');
  const count = { values: 0, skipped: 0 };
  try {
    // Finding one of many links in a header takes libhdf5 a walk over all of them: of large files every tenth object will do.
    const objects = Object.entries(seen);
    const step = objects.length > 1000 ? 10 : 1;
    for (const [where, facts] of objects.filter(([, { links }], i) => i % step === 0 || (links && links.length > 0))) {
      const object = file.get(where);
      if (facts.same !== undefined) continue;
      if (facts.links) {
        expect(object, where).toBeInstanceOf(Group);
        // h5wasm lists by name only.
        expectSame([...(object as Group).keys()].sort(), facts.links.map(([name]) => name).sort(), where);
      }
      if (facts.kind === 'datatype') continue;
      const attributes = (object as Group | Dataset).attrs;
      expectSame(Object.keys(attributes).sort(), (facts.attributes ?? []).map(([name]) => name).sort(), where);
      for (const [name, type, shape, values] of facts.attributes ?? []) {
        const attribute = attributes[name] as Attribute;
        expect(attribute.shape, `${where} ${name}`).toEqual(shape);
        compare(`${where} ${name}`, type, shape, values, () => attribute.value, count);
      }
      const { dataset } = facts;
      if (!dataset) continue;
      expect((object as Dataset).shape, where).toEqual(dataset.shape);
      if (dataset.values) {
        compare(where, dataset.type, dataset.shape, dataset.values, () => (object as Dataset).value, count);
      }
    }
  } finally {
    file.close();
  }
  return count;
}

function compare(
  what: string,
  type: Plain,
  shape: readonly number[] | null,
  values: readonly Plain[],
  read: () => unknown,
  count: { values: number; skipped: number },
): void {
  if (shape === null || values.length === 0 || !representable(type as readonly Plain[])) {
    count.skipped += values.length;
    return;
  }
  const value = read();
  const list = shape.length === 0 ? [value] : Array.from(flat(value, type as readonly Plain[], shape.length));
  const plain = list.map((item) => fromWasm(type as readonly Plain[], item));
  expectSame(plain, values, `h5wasm: ${what}`);
  count.values += values.length;
}

/** h5wasm nests the dimensions of an array type inside those of the dataset; everything else it keeps flat. */
function flat(value: unknown, type: readonly Plain[], rank: number): ArrayLike<unknown> {
  if (type[0] !== 'array') return value as ArrayLike<unknown>;
  return (value as unknown[]).flat(rank - 1);
}

/** Bit fields, opaque data, references and half floats come as raw bytes or not at all. */
function representable(type: readonly Plain[]): boolean {
  switch (type[0]) {
    case 'integer':
      return type[4] === (type[1] as number) * 8 && [1, 2, 4, 8].includes(type[1] as number);
    case 'float':
      return type[1] === 4 || type[1] === 8;
    case 'string':
      return true;
    case 'enum':
      return representable(type[1] as readonly Plain[]);
    case 'vlen':
      return (
        ['integer', 'float'].includes((type[1] as readonly Plain[])[0] as string) &&
        representable(type[1] as readonly Plain[])
      );
    default:
      return false;
  }
}

function fromWasm(type: readonly Plain[], value: unknown): Plain | typeof CANNOT {
  switch (type[0]) {
    case 'float': {
      if (Number.isNaN(value)) return 'NaN';
      const bytes = Buffer.alloc(8);
      bytes.writeDoubleBE(Number(value));
      return bytes.toString('hex');
    }
    case 'integer':
    case 'enum':
      return String(typeof value === 'boolean' ? Number(value) : value);
    case 'string':
      return type[2] === 'space' ? (value as string).replace(/ +$/, '') : (value as string);
    case 'vlen':
      return Array.from(value as ArrayLike<unknown>, (item) => fromWasm(type[1] as readonly Plain[], item) as Plain);
    default:
      return CANNOT;
  }
}
