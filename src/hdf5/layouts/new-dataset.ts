// The header messages of new datasets: type, shape, fill value, filters, and each kind of layout.

import { H5LogError } from '../../base/errors.ts';
import { type Described, type DType, fullType, type NumberType } from '../../dtype/model.ts';
import { ByteWriter, putU64 } from '../format/byte-writer.ts';
import { UNDEFINED } from '../format/cursor.ts';
import { committedType } from '../graph/dataset-header.ts';
import { type AddressSlot, FileExtent, type HeapSlot, type ObjectNode } from '../graph/object-node.ts';
import { type Dataspace, elementCount } from '../messages/dataspace.ts';
import {
  encodeContiguous,
  encodeDataspace,
  encodeDatatype,
  encodeFill,
  encodeFilters,
  encodeLayout,
  layoutAddressAt,
} from '../messages/encode.ts';
import type { AllocationTime, FillMessage } from '../messages/fill-value.ts';
import type { FilterEntry } from '../messages/filter-pipeline.ts';
import type { Layout } from '../messages/layout.ts';
import * as MESSAGE_FLAG from '../messages/message-flags.ts';
import * as MESSAGE from '../messages/message-types.ts';
import { encodeSharedObject, SHARED_ADDRESS_AT } from '../read/shared-messages.ts';
import { buildChunkIndex, type ChunkEntry } from './chunks/chunk-index.ts';
import { ChunkTree } from './chunks/chunk-tree.ts';
import type { Slot } from './external.ts';
import { encodeMappings, type Mapping } from './virtual.ts';

/** What a new dataset is created with. */
export interface NewDataset {
  /** A type, or a committed datatype. */
  readonly dtype: DType | ObjectNode;
  readonly space: Dataspace;
  readonly layout: NewLayout;
  /** An encoded element; zeros if absent. */
  readonly fill?: Uint8Array | 'undefined';
  /** That of the layout if absent. */
  readonly allocation?: AllocationTime;
  readonly filters?: readonly FilterEntry[];
  /** Does not track the creation order of attributes: a few bytes less for datasets that have none. */
  readonly untracked?: boolean;
}

/** The messages of a new dataset, and the extents that are appended with it. `fanout` is that of the file's chunk B-trees; `earliest`: for readers of HDF5 1.8. */
export function draftDataset(
  dataset: NewDataset,
  fanout: number,
  earliest = false,
): { drafts: MessageDraft[]; extents: FileExtent[] } {
  const { space, filters = [] } = dataset;
  const committed =
    typeof dataset.dtype === 'object' && 'links' in dataset.dtype ? (dataset.dtype as ObjectNode) : null;
  const dtype = committed ? committedType(committed) : (dataset.dtype as DType);
  const {
    draft,
    more = [],
    extents,
  } = dataset.layout.draft({
    space,
    elementSize: encodedType(dtype).size,
    filtered: filters.length > 0,
    fanout,
    earliest,
  });
  const fill: FillMessage = {
    allocation: dataset.allocation ?? dataset.layout.allocation,
    value: dataset.fill ?? 'default',
  };
  const drafts: MessageDraft[] = [
    { type: MESSAGE.dataspace, flags: 0, bytes: encodeDataspace(space) },
    draftType(dtype, committed),
    { type: MESSAGE.fill, flags: MESSAGE_FLAG.constant, bytes: encodeFill(fill) },
    draft,
    ...more,
  ];
  if (filters.length > 0)
    drafts.push({ type: MESSAGE.filters, flags: MESSAGE_FLAG.constant, bytes: encodeFilters(filters) });
  return { drafts, extents };
}

interface EncodedType {
  /** Bytes of an element. */
  readonly size: number;
  /** The datatype message. */
  readonly bytes: Uint8Array;
}

const encodedNumbers = new Map<NumberType, EncodedType>();
const encodedTypes = new WeakMap<Described, EncodedType>();

/** The datatype message of a type. Cached, because files have few types and many datasets. */
function encodedType(dtype: DType): EncodedType {
  const known = typeof dtype === 'string' ? encodedNumbers.get(dtype) : encodedTypes.get(dtype);
  if (known) return known;
  const encoded = { size: fullType(dtype).size, bytes: encodeDatatype(dtype) };
  if (typeof dtype === 'string') encodedNumbers.set(dtype, encoded);
  else encodedTypes.set(dtype, encoded);
  return encoded;
}

/** The datatype message of a type, or of a committed datatype, to which it points. */
export function draftType(dtype: DType, committed: ObjectNode | null): MessageDraft {
  if (!committed) return { type: MESSAGE.datatype, flags: MESSAGE_FLAG.constant, bytes: encodedType(dtype).bytes };
  return {
    type: MESSAGE.datatype,
    flags: MESSAGE_FLAG.constant | MESSAGE_FLAG.shared,
    bytes: encodeSharedObject(committed.address),
    targets: [{ at: SHARED_ADDRESS_AT, target: committed }],
  };
}

/** A header message that no object has yet. */
export interface MessageDraft {
  readonly type: number;
  readonly flags: number;
  readonly bytes: Uint8Array;
  readonly targets?: readonly AddressSlot[];
  readonly heap?: readonly HeapSlot[];
}

/** What a layout has to know of its dataset. */
interface LayoutContext {
  readonly space: Dataspace;
  readonly elementSize: number;
  readonly filtered: boolean;
  /** Children of a node in the file's version 1 B-trees of chunks. */
  readonly fanout: number;
  readonly earliest?: boolean;
}

/** Where the data of a new dataset is. */
export interface NewLayout {
  readonly kind: Layout['kind'];
  readonly allocation: AllocationTime;
  /** The layout message, others that belong to it, and the extents that are appended with the commit that first writes the dataset. */
  draft(dataset: LayoutContext): {
    readonly draft: MessageDraft;
    readonly more?: readonly MessageDraft[];
    readonly extents: FileExtent[];
  };
}

function draftLayout(bytes: Uint8Array, points: Pick<MessageDraft, 'targets' | 'heap'> = {}): MessageDraft {
  return { type: MESSAGE.layout, flags: 0, bytes, ...points };
}

/** A dataset whose space is not allocated yet. */
export const unallocated: NewLayout = {
  kind: 'contiguous',
  allocation: 'late',
  draft: (dataset) => ({ draft: draftLayout(encodeContiguous(UNDEFINED, byteSize(dataset))), extents: [] }),
};

/** Data at an address, or in an extent that is appended with the dataset. */
export function contiguous(data: number | FileExtent): NewLayout {
  return {
    kind: 'contiguous',
    allocation: 'late',
    draft: (dataset) => {
      const size = byteSize(dataset);
      // libhdf5 1.14 refuses an address for data of no size.
      if (size === 0) return unallocated.draft(dataset);
      if (typeof data === 'number') return { draft: draftLayout(encodeContiguous(data, size)), extents: [] };
      const targets = [{ at: 2, target: data }];
      return { draft: draftLayout(encodeContiguous(data.address, size), { targets }), extents: [data] };
    },
  };
}

function byteSize({ space, elementSize }: LayoutContext): number {
  return elementCount(space) * elementSize;
}

/** Where the data begins in a compact layout. */
const COMPACT_DATA_AT = 4;

/** Data in the header; `references` are addresses of objects in it. */
export function compact(data: Uint8Array, references: readonly AddressSlot[] = []): NewLayout {
  return {
    kind: 'compact',
    allocation: 'early',
    draft: () => {
      if (data.length > 0xfff0)
        throw new H5LogError('SHAPE', `compact data of ${data.length} bytes; a header holds less than 64 KiB`);
      const bytes = encodeLayout({ kind: 'compact', data });
      const targets = references.map(({ at, target }) => ({ at: COMPACT_DATA_AT + at, target }));
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
      // A commit writes the addresses of objects that it moves, and no others. One that is gone gets a null reference.
      for (const { at, target } of targets)
        putU64(view, at, (target as ObjectNode).linkCount === 0 ? 0 : target.address);
      return { draft: draftLayout(bytes, { targets }), extents: [] };
    },
  };
}

/** Chunks at addresses, or in extents that are appended with the dataset. Their index is built here. */
export function chunked(chunk: readonly number[], chunks: readonly ChunkEntry[]): NewLayout {
  return {
    kind: 'chunked',
    allocation: 'incremental',
    draft: ({ space, elementSize, filtered, fanout, earliest = false }) => {
      if (space.kind !== 'simple') throw new H5LogError('SHAPE', 'only a dataset with dimensions can have chunks');
      const grid = { shape: space.shape, maxShape: space.maxShape, chunk, elementSize, filtered, fanout, earliest };
      const { index, extent } = buildChunkIndex(grid, chunks);
      const layout: Layout = { kind: 'chunked', chunk, elementSize, index };
      const bytes = encodeLayout(layout);
      const targets = extent ? [{ at: layoutAddressAt(layout, bytes.length), target: extent }] : [];
      const extents = chunks.flatMap(({ address }) => (address instanceof FileExtent ? [address] : []));
      if (extent && !extents.includes(extent)) extents.push(extent);
      return { draft: draftLayout(bytes, { targets }), extents };
    },
  };
}

/** Chunks that a B-tree finds; `data` are the extents among them that are appended with the dataset. */
export function chunkedByTree(
  chunk: readonly number[],
  tree: ChunkTree,
  data: readonly FileExtent[] = [],
  edgesUnfiltered = false,
): NewLayout {
  return {
    kind: 'chunked',
    allocation: 'incremental',
    draft: ({ elementSize }) => {
      const layout = tree.layout(chunk, elementSize, edgesUnfiltered);
      const bytes = encodeLayout(layout);
      const targets = [{ at: layoutAddressAt(layout, bytes.length), target: tree.extent }];
      return { draft: draftLayout(bytes, { targets }), extents: [...data, tree.extent] };
    },
  };
}

/** Chunks of which there are none yet; they get an index with the first of them. */
export function chunkedLater(chunk: readonly number[]): NewLayout {
  return {
    kind: 'chunked',
    allocation: 'incremental',
    draft: ({ space, elementSize, filtered }) => {
      const maxShape = space.kind === 'simple' ? space.maxShape : [];
      const layout = ChunkTree.empty({ maxShape, chunk, elementSize, filtered }).layout(chunk, elementSize);
      const unallocatedIndex: Layout = { ...layout, index: { ...layout.index, address: UNDEFINED } };
      return { draft: draftLayout(encodeLayout(unallocatedIndex)), extents: [] };
    },
  };
}

/** Data in other files, whose names are in a local heap. */
export function external(slots: readonly Slot[]): NewLayout {
  return {
    kind: 'contiguous',
    allocation: 'late',
    draft: (dataset) => {
      // The empty name comes first, as in libhdf5.
      const names = new ByteWriter(64).u64(0);
      const at = slots.map(({ name }) => {
        const from = names.length;
        names.text(name).u8(0);
        names.zeros((8 - (names.length % 8)) % 8);
        return from;
      });
      const data = names.done();
      const heap: FileExtent = new FileExtent(32 + data.length, () => [
        new ByteWriter(32)
          .text('HEAP')
          .u32(0)
          .u64(data.length)
          .u64(1)
          .u64(heap.address + 32)
          .done(),
        data,
      ]);
      const out = new ByteWriter(16 + 24 * slots.length).u32(1).u16(slots.length).u16(slots.length).u64(0);
      slots.forEach(({ offset, size }, i) => {
        out
          .u64(at[i] as number)
          .u64(offset)
          .u64(size === Infinity ? UNDEFINED : size);
      });
      const targets = [{ at: 8, target: heap }];
      const files = { type: MESSAGE.externalFiles, flags: MESSAGE_FLAG.constant, bytes: out.done(), targets };
      return { ...unallocated.draft(dataset), more: [files], extents: [heap] };
    },
  };
}

/** Data of other datasets; the mappings, encoded or not, go into the global heap. */
export function virtual(mappings: readonly Mapping[] | Uint8Array): NewLayout {
  return {
    kind: 'virtual',
    allocation: 'incremental',
    draft: ({ earliest }) => {
      if (earliest) throw new H5LogError('UNSUPPORTED', 'HDF5 1.8 has no virtual datasets');
      const encoded = mappings instanceof Uint8Array ? mappings : encodeMappings(mappings);
      const content = { bytes: encoded, owned: true, targets: [], heap: [] };
      const layout: Layout = { kind: 'virtual', heap: 0, index: 0 };
      const bytes = encodeLayout(layout);
      const heap = [{ at: layoutAddressAt(layout, bytes.length), content }];
      return { draft: draftLayout(bytes, { heap }), extents: [] };
    },
  };
}
