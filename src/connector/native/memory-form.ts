import { H5LogError } from '../../base/errors.ts';
import { containsReference, describeType } from '../../dtype/describe.ts';
import { type DType, type FullType, fullType } from '../../dtype/model.ts';
import { CLASS, type TypeFacts } from './library.ts';

/**
 * How elements of a type lie in h5wasm's memory, which is not how they lie in the file: variable-length values are pointers
 * of 32 bits there, so that the fields behind them move up, and big-endian numbers may have been swapped.
 */
export type Form =
  | { readonly kind: 'plain'; readonly size: number; readonly fileSize: number }
  | { readonly kind: 'swapped'; readonly size: number; readonly fileSize: number }
  /** char*: ends with a NUL. */
  | { readonly kind: 'text'; readonly size: 4; readonly fileSize: 16 }
  /** hvl_t: length and pointer. */
  | { readonly kind: 'sequence'; readonly size: 8; readonly fileSize: 16; readonly base: Form }
  | {
      readonly kind: 'array';
      readonly size: number;
      readonly fileSize: number;
      readonly base: Form;
      readonly count: number;
    }
  | {
      readonly kind: 'record';
      readonly size: number;
      readonly fileSize: number;
      readonly fields: readonly FormField[];
    };

interface FormField {
  readonly name: string;
  readonly at: number;
  readonly fileAt: number;
  readonly form: Form;
}

type Order = 'little' | 'big' | 'none' | 'mixed';

/**
 * The form of a dataset's elements. Types that h5wasm would hand over wrong are refused. `facts` asks h5wasm for the type: of
 * single bytes we do not know the order, which means nothing, but libhdf5 goes by it.
 */
export function memoryForm(dtype: DType, path: string, facts: (() => TypeFacts) | null = null): Form {
  refuseOthers(dtype, path);
  const type = fullType(dtype);
  // h5wasm asks for little-endian data if all of it is big-endian; if only some is, it leaves the type alone.
  const swapping = facts !== null && type.class !== 'enum' && containsBig(type) && orderOf(facts()) === 'big';
  if (swapping && containsEnum(type)) {
    // libhdf5 cannot change the order of an enumeration: it stops halfway, or maps members to the wrong bytes.
    throw unsupported(path, `${describeType(dtype)}: big-endian data with enumerations in it`);
  }
  return formOf(dtype, swapping);
}

function unsupported(path: string, what: string): H5LogError {
  return new H5LogError('UNSUPPORTED', `${path}: h5wasm cannot read or write ${what}`, { object: path });
}

function formOf(dtype: DType, swapping: boolean): Form {
  const type = fullType(dtype);
  switch (type.class) {
    case 'integer':
    case 'float':
    case 'bitfield':
      if (swapping && type.order === 'big' && type.size > 1)
        return { kind: 'swapped', size: type.size, fileSize: type.size };
      return plain(type.size);
    case 'string':
      return type.variable ? { kind: 'text', size: 4, fileSize: 16 } : plain(type.size);
    case 'vlen':
      return { kind: 'sequence', size: 8, fileSize: 16, base: formOf(type.base, swapping) };
    case 'array': {
      const base = formOf(type.base, swapping);
      const count = type.shape.reduce((product, n) => product * n, 1);
      if (base.kind === 'plain') return plain(type.size);
      return { kind: 'array', size: base.size * count, fileSize: type.size, base, count };
    }
    case 'compound':
      return recordForm(type, swapping);
    default:
      return plain(type.size);
  }
}

/** As H5T_set_loc does it: in order of their offsets, each field moves by what those before it have lost. */
function recordForm(type: FullType & { class: 'compound' }, swapping: boolean): Form {
  let moved = 0;
  const fields = [...type.fields]
    .sort((a, b) => a.offset - b.offset)
    .map(({ name, offset, dtype }) => {
      const form = formOf(dtype, swapping);
      const field = { name, at: offset + moved, fileAt: offset, form };
      moved += form.size - form.fileSize;
      return field;
    });
  if (fields.every(({ form }) => form.kind === 'plain')) return plain(type.size);
  return { kind: 'record', size: type.size + moved, fileSize: type.size, fields };
}

const plain = (size: number): Form => ({ kind: 'plain', size, fileSize: size });

/** What H5Tget_order says of a type. */
function orderOf(facts: TypeFacts): Order {
  switch (facts.type) {
    case CLASS.integer:
    case CLASS.float:
    case CLASS.bitfield:
    case CLASS.enum:
      return facts.littleEndian ? 'little' : 'big';
    case CLASS.string:
      return facts.vlen ? 'little' : 'none';
    case CLASS.compound: {
      let order: Order = 'none';
      for (const member of facts.compound_type?.members ?? []) {
        const next = orderOf(member);
        if (next === 'mixed' || (next !== 'none' && order !== 'none' && next !== order)) return 'mixed';
        if (next !== 'none') order = next;
      }
      return order;
    }
    default: {
      const base = facts.array_type ?? facts.vlen_type;
      return base ? orderOf(base) : 'none';
    }
  }
}

/** Whether there is anything to swap. */
function containsBig(type: FullType): boolean {
  switch (type.class) {
    case 'integer':
    case 'float':
    case 'bitfield':
      return type.order === 'big' && type.size > 1;
    case 'compound':
      return type.fields.some(({ dtype }) => containsBig(fullType(dtype)));
    case 'enum':
    case 'array':
    case 'vlen':
      return containsBig(fullType(type.base));
    default:
      return false;
  }
}

function containsEnum(type: FullType): boolean {
  if (type.class === 'compound') return type.fields.some(({ dtype }) => containsEnum(fullType(dtype)));
  if (type.class === 'array' || type.class === 'vlen') return containsEnum(fullType(type.base));
  return type.class === 'enum';
}

/** References of HDF5 1.12 hold pointers in memory, old ones of files with short addresses are widened there. */
function refuseOthers(dtype: DType, path: string): void {
  if (!containsReference(dtype)) return;
  const type = fullType(dtype);
  if (type.class === 'compound') for (const field of type.fields) refuseOthers(field.dtype, path);
  else if (type.class === 'array' || type.class === 'vlen') refuseOthers(type.base, path);
  else if (type.class === 'reference') {
    if (type.to === 'other') throw unsupported(path, 'references of the kind that HDF5 1.12 brought');
    const size = type.to === 'object' ? 8 : 12;
    if (type.size !== size) throw unsupported(path, `references of ${type.size} bytes`);
  }
}
