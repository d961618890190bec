import { formatError, H5LogError } from '../../base/errors.ts';
import { type DType, type FullType, fullType, publicType } from '../../dtype/model.ts';
import { Cursor } from '../format/cursor.ts';
import type { MessageDraft, NewLayout } from '../layouts/new-dataset.ts';
import { type Dataspace, encodeDataspace, parseDataspace } from '../messages/dataspace.ts';
import { encodeDatatype, parseDatatype } from '../messages/datatype.ts';
import { type AllocationTime, encodeFill, type FillMessage, parseFill, parseOldFill } from '../messages/fill-value.ts';
import { encodeFilters, type FilterEntry, parseFilters } from '../messages/filter-pipeline.ts';
import { type Layout, type LayoutSizes, parseLayout } from '../messages/layout.ts';
import { MESSAGE, MESSAGE_FLAG } from '../messages/message-types.ts';
import { encodeSharedObject, SHARED_ADDRESS_AT } from '../read/shared-messages.ts';
import type { ObjectNode, Region } from './object-node.ts';

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
  const { draft, regions } = dataset.layout.draft({
    space,
    elementSize: fullType(dtype).size,
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
