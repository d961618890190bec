// What a dataset may be made with.

import type { DType, InputOf, ValueOf } from '../dtype/model.ts';
import type { Filter } from '../log/format/properties.ts';
import type { AttributeValue } from './attribute-values.ts';

export interface DatasetOptions<D extends DType> {
  dtype: D;
  shape: readonly number[];
  maxShape?: readonly (number | null)[];
  fill?: ValueOf<D> | InputOf<D>;
  chunks?: readonly number[];
  filters?: readonly Filter[];
  /** In a log there is no dataset if one of them cannot be set. Several ranks agree on all of them at once, which is faster than one after the other. */
  attributes?: Readonly<Record<string, AttributeValue>>;
}

/** The names of all options. */
export const CREATE: Required<Record<keyof DatasetOptions<DType>, true>> = {
  dtype: true,
  shape: true,
  maxShape: true,
  fill: true,
  chunks: true,
  filters: true,
  attributes: true,
};
