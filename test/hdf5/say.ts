import { type DType, type FullType, fullType } from '../../src/dtype/model.ts';
import type { Superblock } from '../../src/hdf5/format/superblock.ts';
import type { StoredChunk } from '../../src/hdf5/layouts/chunks/chunk-index.ts';
import { type Dataspace, elementCount } from '../../src/hdf5/messages/dataspace.ts';
import type { FillMessage } from '../../src/hdf5/messages/fill-value.ts';
import type { FilterEntry } from '../../src/hdf5/messages/filter-pipeline.ts';
import type { Layout } from '../../src/hdf5/messages/layout.ts';
import type { LinkTarget } from '../../src/hdf5/messages/link.ts';
import type { RawHeader } from '../../src/hdf5/read/object-header.ts';
import { hex } from './fixture.ts';

// One line of text for each thing that h5log parsed, in the words that make.py uses for what h5py and h5debug say.

export function sayBytes(data: Uint8Array): string {
  return data.length <= 32 ? hex(data) : `${data.length} bytes, sum ${data.reduce((sum, byte) => sum + byte, 0)}`;
}

const list = (sizes: readonly (number | null)[]): string => `[${sizes.map((size) => size ?? '*').join(',')}]`;

export function saySuperblock(block: Superblock): string {
  const { version, base, addressSize, lengthSize, flags, root, extension, driver, end, k } = block;
  const ranks = `${k.groupLeaf} ${k.groupInternal} ${k.chunk}`;
  return `v${version} at ${base}, sizes ${addressSize} ${lengthSize}, flags ${flags}, root ${root}, extension ${extension}, driver ${driver}, end ${end}, k ${ranks}`;
}

const MARKS = { tracked: 0x04, indexed: 0x08, phases: 0x10, times: 0x20 };
const NOT_KNOWN_TO_LIBHDF5 = new Set([0x09]);

/** `links` is what the header says of the number of hard links: in version 2 that is a message. */
export function sayHeader(header: RawHeader, links: number, base: number): { header: string; messages: string } {
  const marks = Object.entries(MARKS).flatMap(([name, bit]) => (header.flags & bit ? [name] : []));
  const chunks = header.chunks.map(({ address, size }) => `${size} at ${address}`).join(' + ');
  const messages = header.messages.map(({ type, body, offset, flags }) => {
    const known = type <= 0x18 && !NOT_KNOWN_TO_LIBHDF5.has(type);
    const name = known ? `0x${type.toString(16).padStart(2, '0')}` : 'unknown';
    return `${name}: ${body.length} at ${offset - base}${flags & 2 ? ' shared' : ''}`;
  });
  return {
    header: `${[`v${header.version}`, ...marks].join(' ')}, ${links} links, chunks ${chunks}`,
    messages: messages.join(', '),
  };
}

export function saySpace(space: Dataspace): string {
  if (space.kind !== 'simple') return space.kind;
  const { shape, maxShape } = space;
  const fixed = shape.every((size, d) => size === maxShape[d]);
  return fixed ? list(shape) : `${list(shape)} up to ${list(maxShape)}`;
}

export function sayType(dtype: DType): string {
  const type = fullType(dtype);
  switch (type.class) {
    case 'integer':
      return `${type.signed ? 'i' : 'u'}${type.size} ${bits(type)}`;
    case 'bitfield':
      return `b${type.size} ${bits(type)}`;
    case 'float':
      return `f${type.size} ${bits(type)}${unusualFloat(type)}`;
    case 'string':
      return `string ${type.variable ? '*' : type.size} ${type.pad} ${type.charset}`;
    case 'opaque':
      return `opaque ${type.size} "${type.tag}"`;
    case 'reference':
      return `reference ${type.to}`;
    case 'enum':
      return `enum {${type.entries.map(([name, value]) => `${name}=${value}`).join(', ')}} of ${sayType(type.base)}`;
    case 'vlen':
      return `vlen of ${sayType(type.base)}`;
    case 'array':
      return `array ${list(type.shape)} of ${sayType(type.base)}`;
    case 'compound': {
      const fields = type.fields.map(({ name, offset, dtype: inner }) => `${name} at ${offset}: ${sayType(inner)}`);
      return `compound ${type.size} {${fields.join('; ')}}`;
    }
  }
}

function bits({ order, bitOffset, precision, size }: FullType & { class: 'integer' | 'float' | 'bitfield' }): string {
  return bitOffset === 0 && precision === 8 * size ? order : `${order} bits ${bitOffset}+${precision}`;
}

function unusualFloat(type: FullType & { class: 'float' }): string {
  const { signBit, exponentAt, exponentBits, exponentBias, mantissaAt, mantissaBits, normalization } = type;
  const said = ` sign ${signBit} exponent ${exponentAt}+${exponentBits} bias ${exponentBias} mantissa ${mantissaAt}+${mantissaBits} norm ${normalization}`;
  const usual = [
    ' sign 31 exponent 23+8 bias 127 mantissa 0+23 norm 2',
    ' sign 63 exponent 52+11 bias 1023 mantissa 0+52 norm 2',
  ];
  return usual.includes(said) ? '' : said;
}

export function sayFill({ allocation, value }: FillMessage): string {
  return `${allocation} ${typeof value === 'string' ? value : hex(value)}`;
}

export function sayFilter({ id, name, flags, values }: FilterEntry): string {
  return `${id} ${name} flags ${flags} [${values.join(',')}]`;
}

export function sayLayout(layout: Layout): string {
  switch (layout.kind) {
    case 'compact':
      return `compact ${sayBytes(layout.data)}`;
    case 'contiguous':
      return `contiguous ${layout.size} at ${layout.address}`;
    case 'chunked':
      return `chunked ${list(layout.chunk)} of ${layout.elementSize}`;
    case 'virtual':
      return 'virtual';
  }
}

/** An order of -1 is none. */
export function sayLink(name: string, order: number, target: LinkTarget): string {
  const begin = order < 0 ? name : `${name} #${order}`;
  switch (target.kind) {
    case 'hard':
      return `${begin} at ${target.address}`;
    case 'soft':
      return `${begin} -> ${target.path}`;
    case 'external':
      return `${begin} -> ${target.file}:${target.path}`;
    case 'user':
      return `${begin} of type ${target.type}`;
  }
}

/** An order of -1 is none; the value of a type whose values lie in a heap is left out. */
export function sayAttribute(name: string, order: number, type: FullType, space: Dataspace, data: Uint8Array): string {
  const begin = `${order < 0 ? name : `${name} #${order}`}: ${saySpace(space)} of ${sayType(type)}`;
  if (space.kind === 'null' || inHeap(type)) return begin;
  return `${begin} = ${sayBytes(data.subarray(0, elementCount(space) * type.size))}`;
}

function inHeap(dtype: DType): boolean {
  const type = fullType(dtype);
  if (type.class === 'compound') return type.fields.some((field) => inHeap(field.dtype));
  if (type.class === 'array') return inHeap(type.base);
  return type.class === 'vlen' || type.class === 'reference' || (type.class === 'string' && type.variable);
}

/** In the order of the grid, as libhdf5 lists them whatever the order of their index is. */
export function sayChunks(chunks: readonly StoredChunk[]): string {
  const before = (a: StoredChunk, b: StoredChunk): number => {
    const d = a.cell.findIndex((c, i) => c !== b.cell[i]);
    return d < 0 ? 0 : (a.cell[d] as number) - (b.cell[d] as number);
  };
  return [...chunks]
    .sort(before)
    .map(({ cell, size, address, mask }) => `${list(cell)}: ${size} at ${address}${mask ? ` mask ${mask}` : ''}`)
    .join('; ');
}
