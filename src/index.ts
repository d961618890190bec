import { T as plain } from './dtype/construct.ts';
import type { Described } from './dtype/model.ts';
import type { Selection } from './space/select.ts';

export type { AttributeValue } from './api/attribute-values.ts';
export type { Attributes } from './api/attributes.ts';
export { Dataset, type Filter, type Memory, type ReadOptions } from './api/dataset.ts';
export type { DatasetOptions } from './api/dataset-options.ts';
export { File, File as H5LogFile, type PublishResult } from './api/file.ts';
export { Group } from './api/group.ts';
export { type ErrorCode, type ErrorDetails, H5LogError, isH5LogError } from './base/errors.ts';
export type { Communicator } from './comm/communicator.ts';
export { solo } from './comm/solo.ts';
export type { Commit } from './connector/file-session.ts';
export type { CommonOptions, CreateOptions, OpenOptions } from './connector/options.ts';
export type { ArrayOf, Columns, Described, DType, InputOf, NumberType, TypedArray, ValueOf } from './dtype/model.ts';
export { type FilterCodec, type FilterInfo, registerFilter } from './filter/pipeline.ts';
export type { Publish } from './log/format/log-group.ts';
export type { PublishWay } from './log/format/view.ts';
export { type Selection, select, type Where } from './space/select.ts';
export type { Coordinates, Slab } from './space/shape.ts';
export type { BlockingStorage, ByteStorage } from './storage/storage.ts';

/** Elements of a dataset, as a region reference gives them. */
interface Region {
  path: string;
  where: Selection;
}

type Types = Omit<typeof plain, 'region'> & {
  /** Region reference: the path of a dataset and elements of it; null if it was never set. */
  readonly region: Described<Region | null, (Region | null)[]>;
};

/**
 * Element types beyond the named numbers.
 * @example T.compound({ name: T.string(), position: T.array('float64', [3]), valid: T.bool })
 */
export const T: Types = plain as Types;
