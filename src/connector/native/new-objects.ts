import { H5LogError } from '../../base/errors.ts';
import { describeType } from '../../dtype/describe.ts';
import { type DType, fullType, numberName } from '../../dtype/model.ts';
import { FILTER } from '../../hdf5/messages/filter-pipeline.ts';
import type { Filter } from '../../log/format/properties.ts';
import { sizeOf } from '../../space/shape.ts';
import type { NewDatasetOptions } from '../file-session.ts';
import { CLASS, type ObjectRequest, type TypeRequest } from './library.ts';
import type { Form } from './memory-form.ts';

const CHARSET = { ascii: 0, utf8: 1 } as const;
const UNLIMITED = 2n ** 64n - 1n;
/** Chunks that nobody asked for are at most this large. */
const CHUNK_BYTES = 2 ** 20;
/** Along a dimension that begins empty. */
const FIRST_CHUNK = 1024;

/** How h5wasm is told of a type; those that it cannot make are refused. `path` is for messages. */
function typeRequest(dtype: DType, form: Form, path: string): TypeRequest {
  const type = fullType(dtype);
  const refuse = (why: string): H5LogError =>
    new H5LogError('UNSUPPORTED', `${path}: h5wasm cannot make the type ${describeType(dtype)}${why}`, {
      object: path,
    });
  const base = { size: form.size, signed: false, vlen: false };
  switch (type.class) {
    case 'integer':
      if (type.order !== 'little' && type.size > 1) throw refuse('; it makes little-endian numbers only');
      if (numberName(type) === undefined) throw refuse('');
      return { ...base, type: CLASS.integer, signed: type.signed };
    case 'float':
      if (type.order !== 'little') throw refuse('; it makes little-endian numbers only');
      if (!['float32', 'float64'].includes(numberName(type) ?? '')) throw refuse('');
      return { ...base, type: CLASS.float, signed: true };
    case 'string': {
      const pad = type.charset === 'utf8' ? 'space' : 'zero';
      if (!type.variable && type.pad !== pad)
        throw refuse(`; fixed-length strings are utf8 with pad 'space' or ascii with pad 'zero'`);
      return { ...base, type: CLASS.string, vlen: type.variable, cset: CHARSET[type.charset] };
    }
    case 'reference':
      if (type.to !== 'object') throw refuse('');
      return { ...base, type: CLASS.reference };
    case 'compound': {
      const members = type.fields.map(({ name, dtype: field, offset }) => {
        const own =
          form.kind === 'record' ? form.fields.find((item) => item.fileAt === offset && item.name === name) : null;
        const at = own?.at ?? offset;
        const inner = own?.form ?? {
          kind: 'plain' as const,
          size: fullType(field).size,
          fileSize: fullType(field).size,
        };
        return { ...typeRequest(field, inner, path), name, offset: at };
      });
      return { ...base, type: CLASS.compound, compound_type: { nmembers: members.length, members } };
    }
    default:
      throw refuse('; it makes numbers, strings, object references and compounds of them');
  }
}

export function datasetRequest(given: NewDatasetOptions, form: Form, path: string): ObjectRequest {
  const { shape, maxShape } = given;
  if (given.fill !== undefined)
    throw new H5LogError('UNSUPPORTED', `${path}: h5wasm cannot set a fill value`, { object: path });
  const filter = oneFilter(given.filters, path);
  const grows = maxShape.some((size, d) => size !== shape[d]);
  if (shape.length === 0 && (given.chunks || filter))
    throw new H5LogError('SHAPE', `${path}: a scalar has no chunks and no filters`, { object: path });
  const chunks = given.chunks ?? (filter || grows ? chunksFor(shape, maxShape, form.fileSize) : null);
  return {
    ...typeRequest(given.dtype, form, path),
    shape: shape.map(BigInt),
    maxshape: maxShape.map((size) => (size === null ? UNLIMITED : BigInt(size))),
    chunks: chunks?.map(BigInt) ?? null,
    track_order: true,
    ...filter,
  };
}

export function attributeRequest(dtype: DType, form: Form, shape: readonly number[], path: string): ObjectRequest {
  return { ...typeRequest(dtype, form, path), shape: shape.map(BigInt), maxshape: null, chunks: null };
}

/** h5wasm sets one filter and no more. */
function oneFilter(
  filters: readonly Filter[],
  path: string,
): { compression: number; compression_opts: number[] } | null {
  const [filter, ...more] = filters;
  if (filter === undefined) return null;
  if (more.length > 0) {
    throw new H5LogError('UNSUPPORTED', `${path}: h5wasm makes datasets with one filter, not ${filters.length}`, {
      object: path,
    });
  }
  if (filter === 'shuffle') return { compression: FILTER.shuffle, compression_opts: [] };
  if (filter === 'fletcher32') return { compression: FILTER.fletcher32, compression_opts: [] };
  if ('id' in filter) return { compression: filter.id, compression_opts: [...(filter.parameters ?? [])] };
  return { compression: FILTER.deflate, compression_opts: [filter.deflate] };
}

/** The dataset's own proportions, halved along the longest side until they fit. */
function chunksFor(shape: readonly number[], maxShape: readonly (number | null)[], size: number): number[] {
  const sides = shape.map((n, d) => Math.max(1, n > 0 ? n : Math.min(FIRST_CHUNK, maxShape[d] ?? FIRST_CHUNK)));
  while (sizeOf(sides) * size > CHUNK_BYTES && sides.some((side) => side > 1)) {
    const longest = sides.indexOf(Math.max(...sides));
    sides[longest] = Math.ceil((sides[longest] as number) / 2);
  }
  return sides;
}
