import { type DType, type FullType, fullType, publicType } from '../dtype/model.ts';
import { formatError, H5LogError } from '../errors.ts';
import { buildChunkIndex, type ChunkPlace } from './chunk-index.ts';
import { Cursor, UNDEFINED } from './cursor.ts';
import { type Dataspace, elementCount, encodeDataspace, parseDataspace } from './dataspace.ts';
import { encodeDatatype, parseDatatype } from './datatype-message.ts';
import { type AllocationTime, encodeFill, type FillMessage, parseFill, parseOldFill } from './fill.ts';
import { encodeFilters, type FilterEntry, parseFilters } from './filter-message.ts';
import { encodeLayout, type Layout, type LayoutSizes, parseLayout } from './layout-message.ts';
import { MESSAGE, MESSAGE_FLAG } from './message-types.ts';
import { type HeapSlot, type ObjectNode, Region, type TargetSlot } from './object-node.ts';
import { encodeSharedObject, SHARED_ADDRESS_AT } from './shared-message.ts';
import { encodeMappings, type Mapping } from './virtual-layout.ts';

/** Where a new dataset's data is. A region is appended with the commit that first writes the dataset. */
export type NewLayout =
  | { readonly kind: 'unallocated' }
  | { readonly kind: 'compact'; readonly data: Uint8Array }
  | { readonly kind: 'contiguous'; readonly data: number | Region }
  | { readonly kind: 'chunked'; readonly chunk: readonly number[]; readonly chunks: readonly ChunkPlace[] }
  | { readonly kind: 'virtual'; readonly mappings: readonly Mapping[] };

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

/** A message still without an owner. */
export interface MessageDraft {
  readonly type: number;
  readonly flags: number;
  readonly bytes: Uint8Array;
  readonly targets?: readonly TargetSlot[];
  readonly heap?: readonly HeapSlot[];
}

/** What a dataset's header says about its data. */
export interface DatasetParts {
  readonly type: FullType;
  readonly dtype: DType;
  readonly space: Dataspace;
  readonly layout: Layout | null;
  readonly fill: FillMessage;
  readonly filters: readonly FilterEntry[];
  /** Where the fill value's message lies in the file. */
  readonly fillOffset: number;
}

/** Takes the header of a dataset apart. */
export function datasetParts(node: ObjectNode, file: LayoutSizes & { readonly base: number }): DatasetParts {
  const part = (type: number): Cursor | null => {
    const message = node.message(type);
    return message ? new Cursor(message.content, message.offset) : null;
  };
  const typeAt = part(MESSAGE.datatype);
  const spaceAt = part(MESSAGE.dataspace);
  if (!typeAt || !spaceAt) throw formatError('dataset without a datatype or a dataspace', file.base + node.address);
  const type = parseDatatype(typeAt);
  const layoutAt = part(MESSAGE.layout);
  const fillAt = part(MESSAGE.fill);
  const oldFillAt = part(MESSAGE.oldFill);
  const filtersAt = part(MESSAGE.filters);
  return {
    type,
    dtype: publicType(type),
    space: parseDataspace(spaceAt, file.lengthSize),
    layout: layoutAt && parseLayout(layoutAt, file),
    fill: fillAt ? parseFill(fillAt) : oldFillAt ? parseOldFill(oldFillAt) : { allocation: 'late', value: 'default' },
    filters: filtersAt ? parseFilters(filtersAt) : [],
    fillOffset: (fillAt ?? oldFillAt)?.base ?? file.base + node.address,
  };
}

/** The messages of a new dataset and the regions that go with it. `fanout` is that of the file's chunk trees. */
export function draftDataset(dataset: NewDataset, fanout: number): { drafts: MessageDraft[]; regions: Region[] } {
  const { space, filters = [] } = dataset;
  const committed =
    typeof dataset.dtype === 'object' && 'links' in dataset.dtype ? (dataset.dtype as ObjectNode) : null;
  const dtype = committed ? committedType(committed) : (dataset.dtype as DType);
  const { draft, regions } = draftLayout(dataset.layout, space, fullType(dtype).size, filters.length > 0, fanout);
  const fill: FillMessage = {
    allocation: dataset.allocation ?? defaultAllocation(dataset.layout),
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
  return { drafts, regions };
}

/** What a committed datatype describes. */
export function committedType(node: ObjectNode): DType {
  const message = node.message(MESSAGE.datatype);
  if (!message) throw new H5LogError('DTYPE', 'the object is not a committed datatype');
  return publicType(parseDatatype(new Cursor(message.content, message.offset)));
}

export function draftType(dtype: DType, committed: ObjectNode | null): MessageDraft {
  if (!committed) return { type: MESSAGE.datatype, flags: MESSAGE_FLAG.constant, bytes: encodeDatatype(dtype) };
  return {
    type: MESSAGE.datatype,
    flags: MESSAGE_FLAG.constant | MESSAGE_FLAG.shared,
    bytes: encodeSharedObject(committed.address),
    targets: [{ at: SHARED_ADDRESS_AT, node: committed }],
  };
}

function defaultAllocation(layout: NewLayout): AllocationTime {
  if (layout.kind === 'chunked' || layout.kind === 'virtual') return 'incremental';
  return layout.kind === 'compact' ? 'early' : 'late';
}

function draftLayout(
  layout: NewLayout,
  space: Dataspace,
  elementSize: number,
  filtered: boolean,
  fanout: number,
): { draft: MessageDraft; regions: Region[] } {
  const size = elementCount(space) * elementSize;
  const draft = (stored: Layout, extra: Partial<MessageDraft> = {}): MessageDraft => ({
    type: MESSAGE.layout,
    flags: 0,
    bytes: encodeLayout(stored),
    ...extra,
  });
  switch (layout.kind) {
    case 'unallocated':
      return { draft: draft({ kind: 'contiguous', address: UNDEFINED, size }), regions: [] };
    case 'compact':
      if (layout.data.length > 0xfff0)
        throw new H5LogError('SHAPE', `compact data of ${layout.data.length} bytes; a header holds less than 64 KiB`);
      return { draft: draft({ kind: 'compact', data: layout.data }), regions: [] };
    case 'contiguous': {
      // libhdf5 1.14 refuses an address for data of no size.
      if (size === 0) return { draft: draft({ kind: 'contiguous', address: UNDEFINED, size }), regions: [] };
      if (typeof layout.data === 'number')
        return { draft: draft({ kind: 'contiguous', address: layout.data, size }), regions: [] };
      const targets = [{ at: 2, node: layout.data }];
      return {
        draft: draft({ kind: 'contiguous', address: layout.data.address, size }, { targets }),
        regions: [layout.data],
      };
    }
    case 'chunked': {
      if (space.kind !== 'simple') throw new H5LogError('SHAPE', 'only a dataset with dimensions can have chunks');
      const { chunk, chunks } = layout;
      const grid = { shape: space.shape, maxShape: space.maxShape, chunk, elementSize, filtered, fanout };
      const { index, region } = buildChunkIndex(grid, chunks);
      const bytes = encodeLayout({ kind: 'chunked', chunk, elementSize, index });
      const targets = region ? [{ at: index.kind === 'btree1' ? 3 : bytes.length - 8, node: region }] : [];
      const regions = chunks.flatMap(({ address }) => (address instanceof Region ? [address] : []));
      if (region && !regions.includes(region)) regions.push(region);
      return { draft: { type: MESSAGE.layout, flags: 0, bytes, targets }, regions };
    }
    case 'virtual': {
      const content = { bytes: encodeMappings(layout.mappings), owned: true, targets: [], heap: [] };
      return { draft: draft({ kind: 'virtual', heap: 0, index: 0 }, { heap: [{ at: 2, content }] }), regions: [] };
    }
  }
}
