import { H5LogError } from '../../base/errors.ts';
import { type Described, type DType, fullType, type NumberType } from '../../dtype/model.ts';
import { UNDEFINED } from '../format/cursor.ts';
import { committedType } from '../graph/dataset-header.ts';
import { type AddressSlot, FileExtent, type HeapSlot, type ObjectNode } from '../graph/object-node.ts';
import { type Dataspace, elementCount, encodeDataspace } from '../messages/dataspace.ts';
import { encodeDatatype } from '../messages/datatype.ts';
import { type AllocationTime, encodeFill, type FillMessage } from '../messages/fill-value.ts';
import { encodeFilters, type FilterEntry } from '../messages/filter-pipeline.ts';
import { encodeContiguous, encodeLayout, type Layout } from '../messages/layout.ts';
import { MESSAGE, MESSAGE_FLAG } from '../messages/message-types.ts';
import { encodeSharedObject, SHARED_ADDRESS_AT } from '../read/shared-messages.ts';
import { buildChunkIndex, type ChunkEntry } from './chunks/chunk-index.ts';
import { encodeMappings, type Mapping } from './virtual.ts';

export interface NewDataset {
  /** A type of its own, or a committed datatype. */
  readonly dtype: DType | ObjectNode;
  readonly space: Dataspace;
  readonly layout: NewLayout;
  readonly fill?: Uint8Array | 'undefined';
  readonly allocation?: AllocationTime;
  readonly filters?: readonly FilterEntry[];
  /** Keeps no order of attributes: a few bytes less for datasets that have none. */
  readonly plain?: boolean;
}

/** The messages of a new dataset and the extents that go with it. `fanout` is that of the file's chunk trees. */
export function draftDataset(dataset: NewDataset, fanout: number): { drafts: MessageDraft[]; extents: FileExtent[] } {
  const { space, filters = [] } = dataset;
  const committed =
    typeof dataset.dtype === 'object' && 'links' in dataset.dtype ? (dataset.dtype as ObjectNode) : null;
  const dtype = committed ? committedType(committed) : (dataset.dtype as DType);
  const { draft, extents } = dataset.layout.draft({
    space,
    elementSize: encodedType(dtype).size,
    filtered: filters.length > 0,
    fanout,
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

export function draftType(dtype: DType, committed: ObjectNode | null): MessageDraft {
  if (!committed) return { type: MESSAGE.datatype, flags: MESSAGE_FLAG.constant, bytes: encodedType(dtype).bytes };
  return {
    type: MESSAGE.datatype,
    flags: MESSAGE_FLAG.constant | MESSAGE_FLAG.shared,
    bytes: encodeSharedObject(committed.address),
    targets: [{ at: SHARED_ADDRESS_AT, target: committed }],
  };
}

/** A message still without an owner. */
export interface MessageDraft {
  readonly type: number;
  readonly flags: number;
  readonly bytes: Uint8Array;
  readonly targets?: readonly AddressSlot[];
  readonly heap?: readonly HeapSlot[];
}

/** What a layout has to know of its dataset. */
export interface LayoutContext {
  readonly space: Dataspace;
  readonly elementSize: number;
  readonly filtered: boolean;
  /** Of the file's chunk trees. */
  readonly fanout: number;
}

/** Where a new dataset's data is. What a log never makes is in ordinary-layouts.ts. */
export interface NewLayout {
  readonly kind: Layout['kind'];
  readonly allocation: AllocationTime;
  /** The message, and extents that are appended with the commit that first writes the dataset. */
  draft(dataset: LayoutContext): { readonly draft: MessageDraft; readonly extents: FileExtent[] };
}

export function draftLayout(bytes: Uint8Array, points: Pick<MessageDraft, 'targets' | 'heap'> = {}): MessageDraft {
  return { type: MESSAGE.layout, flags: 0, bytes, ...points };
}

export const unallocated: NewLayout = {
  kind: 'contiguous',
  allocation: 'late',
  draft: (dataset) => ({ draft: draftLayout(encodeContiguous(UNDEFINED, sizeOf(dataset))), extents: [] }),
};

/** Data at an address, or in an extent that gets one. */
export function contiguous(data: number | FileExtent): NewLayout {
  return {
    kind: 'contiguous',
    allocation: 'late',
    draft: (dataset) => {
      const size = sizeOf(dataset);
      // libhdf5 1.14 refuses an address for data of no size.
      if (size === 0) return unallocated.draft(dataset);
      if (typeof data === 'number') return { draft: draftLayout(encodeContiguous(data, size)), extents: [] };
      const targets = [{ at: 2, target: data }];
      return { draft: draftLayout(encodeContiguous(data.address, size), { targets }), extents: [data] };
    },
  };
}

function sizeOf({ space, elementSize }: LayoutContext): number {
  return elementCount(space) * elementSize;
}

// Layouts of datasets that are in no log: tools and tests make them, a page that only opens files does not load them.

/** Data in the header itself. */
export function compact(data: Uint8Array): NewLayout {
  return {
    kind: 'compact',
    allocation: 'early',
    draft: () => {
      if (data.length > 0xfff0)
        throw new H5LogError('SHAPE', `compact data of ${data.length} bytes; a header holds less than 64 KiB`);
      return { draft: draftLayout(encodeLayout({ kind: 'compact', data })), extents: [] };
    },
  };
}

export function chunked(chunk: readonly number[], chunks: readonly ChunkEntry[]): NewLayout {
  return {
    kind: 'chunked',
    allocation: 'incremental',
    draft: ({ space, elementSize, filtered, fanout }) => {
      if (space.kind !== 'simple') throw new H5LogError('SHAPE', 'only a dataset with dimensions can have chunks');
      const grid = { shape: space.shape, maxShape: space.maxShape, chunk, elementSize, filtered, fanout };
      const { index, extent } = buildChunkIndex(grid, chunks);
      const bytes = encodeLayout({ kind: 'chunked', chunk, elementSize, index });
      const targets = extent ? [{ at: index.kind === 'btree1' ? 3 : bytes.length - 8, target: extent }] : [];
      const extents = chunks.flatMap(({ address }) => (address instanceof FileExtent ? [address] : []));
      if (extent && !extents.includes(extent)) extents.push(extent);
      return { draft: draftLayout(bytes, { targets }), extents };
    },
  };
}

export function virtual(mappings: readonly Mapping[]): NewLayout {
  return {
    kind: 'virtual',
    allocation: 'incremental',
    draft: () => {
      const content = { bytes: encodeMappings(mappings), owned: true, targets: [], heap: [] };
      const bytes = encodeLayout({ kind: 'virtual', heap: 0, index: 0 });
      return { draft: draftLayout(bytes, { heap: [{ at: 2, content }] }), extents: [] };
    },
  };
}
