// Encoding datatype messages: see datatype.ts.

import { H5LogError } from '../../base/errors.ts';
import { writeUnusual } from '../../dtype/bits.ts';
import { type DType, type FullType, fullType, type IntegerType } from '../../dtype/model.ts';
import { ByteWriter, bytesFor } from '../format/byte-writer.ts';
import { CLASS, PADS } from './datatype.ts';

/** Encodes a datatype: version 1 for plain ones, version 3 wherever types are nested, as libhdf5 does. */
export function encodeDatatype(dtype: DType): Uint8Array {
  const type = fullType(dtype);
  const nested =
    ['compound', 'enum', 'vlen', 'array'].includes(type.class) || (type.class === 'string' && type.variable);
  const out = new ByteWriter(64);
  putDatatype(out, type, nested ? 3 : 1);
  return out.done();
}

// ------------------------------------------------------------------ writing

function putDatatype(out: ByteWriter, type: FullType, version: number): void {
  const head = (kind: number, bits: number, size = type.size): void => {
    out
      .u8(kind | (version << 4))
      .uint(bits, 3)
      .u32(size);
  };
  const big = 'order' in type && type.order === 'big' ? 1 : 0;
  switch (type.class) {
    case 'integer':
      head(CLASS.integer, big | (type.signed ? 8 : 0));
      out.u16(type.bitOffset).u16(type.precision);
      return;
    case 'float':
      head(CLASS.float, big | (type.normalization << 4) | (type.signBit << 8));
      out.u16(type.bitOffset).u16(type.precision).u8(type.exponentAt).u8(type.exponentBits);
      out.u8(type.mantissaAt).u8(type.mantissaBits).u32(type.exponentBias);
      return;
    case 'string': {
      const pad = PADS.indexOf(type.pad);
      const set = type.charset === 'utf8' ? 1 : 0;
      if (!type.variable) {
        head(CLASS.string, pad | (set << 4));
        return;
      }
      head(CLASS.vlen, 1 | (pad << 4) | (set << 8));
      // libhdf5 stores a one-byte unsigned integer as what a variable-length string is made of.
      putDatatype(out, fullType('uint8'), version);
      return;
    }
    case 'bitfield':
      head(CLASS.bitfield, big);
      out.u16(type.bitOffset).u16(type.precision);
      return;
    case 'opaque': {
      const tag = new TextEncoder().encode(type.tag);
      const padded = Math.ceil(tag.length / 8) * 8;
      head(CLASS.opaque, padded);
      out.put(tag).zeros(padded - tag.length);
      return;
    }
    case 'compound': {
      head(CLASS.compound, type.fields.length);
      const offsetSize = bytesFor(type.size);
      for (const field of type.fields) {
        out.text(field.name).u8(0).uint(field.offset, offsetSize);
        putDatatype(out, fullType(field.dtype), version);
      }
      return;
    }
    case 'reference':
      if (type.to === 'other') throw new H5LogError('UNSUPPORTED', 'references of HDF5 1.12 cannot be written');
      head(CLASS.reference, type.to === 'object' ? 0 : 1);
      return;
    case 'enum': {
      head(CLASS.enum, type.entries.length);
      putDatatype(out, fullType(type.base), version);
      for (const [name] of type.entries) out.text(name).u8(0);
      const values = type.entries.map(([, value]) => value);
      const bytes = new Uint8Array(type.size * values.length);
      writeUnusual(fullType(type.base) as IntegerType, values, 0, values.length, bytes, 0);
      out.put(bytes);
      return;
    }
    case 'vlen':
      head(CLASS.vlen, 0);
      putDatatype(out, fullType(type.base), version);
      return;
    case 'array':
      head(CLASS.array, 0);
      out.u8(type.shape.length);
      for (const size of type.shape) out.u32(size);
      putDatatype(out, fullType(type.base), version);
      return;
  }
}
