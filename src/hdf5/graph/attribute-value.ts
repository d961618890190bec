// Attributes: what their messages say, and their values, also those that the next commit will write.

import { atOffset, formatError } from '../../base/errors.ts';
import { decodeOne, decodeValues, type Resolver } from '../../dtype/decode.ts';
import { type DType, type FullType, publicType } from '../../dtype/model.ts';
import type { Io } from '../../storage/io.ts';
import { Cursor } from '../format/cursor.ts';
import type { GlobalHeap, HeapLookup } from '../format/global-heap.ts';
import { parseAttribute } from '../messages/attribute.ts';
import { type Dataspace, elementCount, parseDataspace } from '../messages/dataspace.ts';
import { parseDatatype } from '../messages/datatype.ts';
import type { Attribute, Relocatable } from './object-node.ts';

/** What the message of an attribute says, shared parts included. */
export interface AttributeParts {
  readonly type: FullType;
  readonly dtype: DType;
  readonly space: Dataspace;
  /** Number of elements. */
  readonly count: number;
  /** Position of the encoded value in the message, and the value. */
  readonly dataAt: number;
  readonly data: Uint8Array;
}

/** Decodes the message of an attribute. */
export function attributeParts(attribute: Attribute, lengthSize: number): AttributeParts {
  const content = attribute.message.content;
  const { offset } = attribute.message;
  const parsed = parseAttribute(new Cursor(content, offset), lengthSize);
  const type =
    'sharedAt' in parsed.type ? parseDatatype(new Cursor(present(attribute.sharedType, offset), offset)) : parsed.type;
  const space =
    'sharedAt' in parsed.space
      ? parseDataspace(new Cursor(present(attribute.sharedSpace, offset), offset), lengthSize)
      : parsed.space;
  const count = elementCount(space);
  const size = count * type.size;
  if (parsed.dataAt + size > content.length) {
    throw formatError(
      `attribute ${attribute.name} holds ${content.length - parsed.dataAt} bytes, its shape asks for ${size}`,
      offset,
    );
  }
  return {
    type,
    dtype: publicType(type),
    space,
    count,
    dataAt: parsed.dataAt,
    data: content.subarray(parsed.dataAt, parsed.dataAt + size),
  };
}

function present(bytes: Uint8Array | null, offset: number): Uint8Array {
  if (!bytes) throw formatError('a shared part of an attribute is missing', offset);
  return bytes;
}

/** Finds what references lead to. */
interface ReferredObjects {
  pathsOf(addresses: ReadonlySet<number>): Io<ReadonlyMap<number, string>>;
  readonly selection: NonNullable<Resolver['selection']>;
}

/** Reads the value of an attribute: null for a NULL dataspace, an element for a scalar, else a flat array. */
export function* readAttribute(
  attribute: Attribute,
  lengthSize: number,
  heap: GlobalHeap,
  objects: ReferredObjects,
): Io<unknown> {
  try {
    return yield* readValue(attribute, lengthSize, heap, objects);
  } catch (error) {
    throw atOffset(error, attribute.message.offset);
  }
}

function* readValue(attribute: Attribute, lengthSize: number, heap: GlobalHeap, objects: ReferredObjects): Io<unknown> {
  const { dtype, space, count, data } = attributeParts(attribute, lengthSize);
  if (space.kind === 'null') return null;
  const pending = new PendingHeap(attribute.message);
  const own: HeapLookup = (address, index) => pending.get(address, index);
  yield* heap.load(dtype, data, count, own);
  let paths: ReadonlyMap<number, string> = new Map();
  const wanted = new Set<number>();
  const path = (address: number): string => {
    wanted.add(address);
    return paths.get(address) ?? '';
  };
  const decode = (): unknown => {
    const resolver = { heap: heap.contents(own), path, selection: objects.selection };
    return space.kind === 'scalar' ? decodeOne(dtype, data, resolver) : decodeValues(dtype, data, count, resolver);
  };
  const value = decode();
  if (wanted.size === 0) return value;
  // References hold addresses. Finding the paths of objects takes I/O, so it happens between two passes of decoding.
  paths = yield* objects.pathsOf(wanted);
  return decode();
}

/** Heap objects of a message that are not, or not yet surely, in the file. */
class PendingHeap {
  readonly #contents = new Map<number, Map<number, Uint8Array>>();

  constructor(message: Relocatable) {
    this.#collect(message);
  }

  #collect(item: Relocatable): void {
    for (const { at, content } of item.heap) {
      const view = new DataView(item.bytes.buffer, item.bytes.byteOffset + at, 12);
      const address = view.getUint32(0, true) + view.getUint32(4, true) * 2 ** 32;
      let collection = this.#contents.get(address);
      if (!collection) {
        collection = new Map();
        this.#contents.set(address, collection);
      }
      collection.set(view.getUint32(8, true), content.bytes);
      this.#collect(content);
    }
  }

  get(address: number, index: number): Uint8Array | undefined {
    return this.#contents.get(address)?.get(index);
  }
}
