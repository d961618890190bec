// Datasets: what their header messages say about type, shape, layout, fill value and filters.

import { formatError, H5LogError } from '../../base/errors.ts';
import { type DType, type FullType, publicType } from '../../dtype/model.ts';
import { Cursor } from '../format/cursor.ts';
import { type Dataspace, parseDataspace } from '../messages/dataspace.ts';
import { parseDatatype } from '../messages/datatype.ts';
import { type FillMessage, parseFill, parseOldFill } from '../messages/fill-value.ts';
import { type FilterEntry, parseFilters } from '../messages/filter-pipeline.ts';
import { type Layout, type LayoutSizes, parseLayout } from '../messages/layout.ts';
import * as MESSAGE from '../messages/message-types.ts';
import type { ObjectNode } from './object-node.ts';

/** What a dataset's header says about its data. */
export interface DatasetParts {
  readonly type: FullType;
  readonly dtype: DType;
  readonly space: Dataspace;
  readonly layout: Layout | null;
  readonly fill: FillMessage;
  readonly filters: readonly FilterEntry[];
  /** File offset of the fill value message, or of the header if there is none. */
  readonly fillOffset: number;
}

/** Decodes the header of a dataset. */
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

/** The type that a committed datatype describes. */
export function committedType(node: ObjectNode): DType {
  const message = node.message(MESSAGE.datatype);
  if (!message) throw new H5LogError('DTYPE', 'the object is not a committed datatype');
  return publicType(parseDatatype(new Cursor(message.content, message.offset)));
}
