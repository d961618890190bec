import type { AttributeFacts, Description, Facts, Plain } from '../interop/describe.ts';
import { PIECES } from './contents.ts';
import { namesIn, type State } from './model.ts';
import { elementOf, type Json, type TypeText } from './types.ts';

// A state in the words of test/interop/describe.py: what h5py must see of it.

/** Attributes and root groups of the log and of sealing. */
const OWN_ATTRIBUTES = ['_int_att', '_token', '_dims', '_mdims', '_ID', '_chunks', '_filters', '_reach', '_at'];
const OWN_GROUPS = ['_LOG', '_COMMITS', PIECES];

/**
 * Of a logged dataset h5py sees the type, and its shape as an attribute; of an ordinary one everything. `isDoubled`: the log has
 * made all names, and those that begin with an underscore have one more.
 */
export function seenByH5py(state: State, isLogged: (path: string) => boolean, isDoubled: boolean): Description {
  const stored = (name: string): string => (isDoubled && name.startsWith('_') ? `_${name}` : name);
  const storedPath = (path: string): string =>
    namesIn(path).length === 0 ? path : path.split('/').map(stored).join('/');
  const seen: Description = {};
  for (const [path, object] of Object.entries(state)) {
    const attributes = Object.entries(object.attributes).map(([name, attribute]): AttributeFacts => {
      const { dtype, shape, values } = attribute;
      const shown = values.map((value) =>
        dtype === 'reference' ? storedPath(value as string) : plainValue(dtype, value),
      );
      return [stored(name), plainType(dtype), shape, shown];
    });
    const facts: Facts = { attributes };
    if ('links' in object) {
      facts.kind = 'group';
      facts.links = object.links.map((link) => {
        if ('to' in link) return [stored(link.name), 'hard'];
        if ('soft' in link) return [stored(link.name), 'soft', storedPath(link.soft)];
        return [stored(link.name), 'external', ...link.external];
      });
      facts.links.sort(byName);
    } else {
      facts.kind = 'dataset';
      const { dtype, shape, maxShape, chunks, filters, values } = object;
      const type = plainType(dtype);
      const logged = isLogged(path);
      if (logged) attributes.push(['_dims', plainType('int64'), [shape.length], shape.map(String)]);
      facts.dataset = logged
        ? { type, shape: null, max: null, chunk: null, filters: [], values: [] }
        : {
            ...{ type, shape, max: shape.length === 0 ? null : maxShape, chunk: chunks },
            filters: filters.map((filter) => (filter === 'shuffle' ? 2 : filter === 'fletcher32' ? 3 : 1)),
            values: values.map((value) => plainValue(dtype, value)),
          };
    }
    attributes.sort(byName);
    seen[storedPath(path)] = facts;
  }
  return seen;
}

/** What h5py saw, without what belongs to the log and what the model does not know: counts of links, other names of an object. */
export function withoutLog(description: Description, hasLog: boolean): Description {
  const groups = hasLog ? OWN_GROUPS : [PIECES];
  const left: Description = {};
  const below = (path: string): boolean => groups.some((name) => path === `/${name}` || path.startsWith(`/${name}/`));
  for (const [path, { same, count: _, attributes = [], links, ...facts }] of Object.entries(description)) {
    if (same !== undefined || below(path)) continue;
    const isLogged = facts.dataset?.shape === null;
    const own = (name: string): boolean => OWN_ATTRIBUTES.includes(name) && !(isLogged && name === '_dims');
    left[path] = { ...facts, attributes: attributes.filter(([name]) => !own(name)).sort(byName) };
    if (links) left[path].links = links.filter(([name]) => path !== '/' || !groups.includes(name)).sort(byName);
  }
  return left;
}

const byName = (a: readonly unknown[], b: readonly unknown[]): number => (String(a[0]) < String(b[0]) ? -1 : 1);

const FLOATS = {
  float16: [2, 15, 10, 5, 0, 10, 15],
  float32: [4, 31, 23, 8, 0, 23, 127],
  float64: [8, 63, 52, 11, 0, 52, 1023],
};

function holdsVariable(type: TypeText): boolean {
  if (typeof type === 'string') return false;
  if ('compound' in type) return type.compound.some(({ dtype }) => holdsVariable(dtype));
  return 'array' in type ? holdsVariable(type.array) : 'string' in type && type.string === 'variable';
}

function numberType(name: string, order: 'little' | 'big'): Plain {
  if (name in FLOATS) {
    const [size = 0, ...fields] = FLOATS[name as keyof typeof FLOATS];
    return ['float', size, order, size * 8, ...fields];
  }
  const bits = Number(/\d+/.exec(name)?.[0]);
  return ['integer', bits / 8, bits > 8 ? order : 'little', !name.startsWith('u'), bits, 0];
}

/** h5py cannot tell values above 2^63 - 1. */
const memberValue = (value: number | string): string => {
  const exact = BigInt(value);
  return String(exact < 2n ** 63n ? exact : 2n ** 63n - 1n);
};

function plainType(type: TypeText): Plain {
  if (type === 'bool')
    return [
      'enum',
      numberType('int8', 'little'),
      [
        ['FALSE', '0'],
        ['TRUE', '1'],
      ],
    ];
  if (type === 'reference') return ['reference', 'object'];
  if (typeof type === 'string') return numberType(type, 'little');
  if ('bigEndian' in type) return numberType(type.bigEndian, 'big');
  if ('string' in type) return ['string', type.string, type.pad, type.charset];
  if ('enum' in type) {
    return [
      'enum',
      numberType(type.enum, 'little'),
      Object.entries(type.members).map(([name, value]) => [name, memberValue(value)]),
    ];
  }
  if ('compound' in type) {
    const known = !holdsVariable(type);
    const fields = type.compound.map(({ name, offset, dtype }) => [name, known ? offset : -1, plainType(dtype)]);
    return ['compound', known ? type.size : -1, fields];
  }
  if ('array' in type) return ['array', [...type.shape], plainType(type.array)];
  if ('vlen' in type) return ['vlen', plainType(type.vlen)];
  return 'opaque' in type ? ['opaque', type.opaque, type.tag] : ['bitfield', type.bitfield];
}

function plainValue(type: TypeText, json: Json): Plain {
  if (typeof type === 'object') {
    if ('string' in type || 'opaque' in type) return json as string;
    if ('compound' in type) {
      const record = json as Readonly<Record<string, Json>>;
      return type.compound.map(({ name, dtype }) => [name, plainValue(dtype, record[name] as Json)]);
    }
    if ('array' in type) return (json as Json[]).map((item) => plainValue(type.array, item));
    if ('vlen' in type) return (json as Json[]).map((item) => plainValue(type.vlen, item));
  }
  const value = elementOf(type, json);
  const name = typeof type === 'string' ? type : 'bigEndian' in type ? type.bigEndian : '';
  if (!name.startsWith('float')) return String(typeof value === 'boolean' ? Number(value) : value);
  if (Number.isNaN(value)) return 'NaN';
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleBE(value as number);
  return bytes.toString('hex');
}
