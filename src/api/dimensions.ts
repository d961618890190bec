// The dimensions of a dataset, as its attributes describe them: labels and scales.

import type { Dataset } from './dataset.ts';

export const LIST = 'DIMENSION_LIST';
export const LABELS = 'DIMENSION_LABELS';

/** A dimension of a dataset: its label, '' without one, and the scales attached to it. */
export interface Dimension {
  readonly label: string;
  readonly scales: readonly Dataset[];
}

/** The paths of the scales of each dimension, but for those that are gone. */
export function attached({ attributes, rank }: Dataset): string[][] {
  const stored = attributes.has(LIST) ? (attributes.get(LIST) as unknown) : [];
  const lists = Array.isArray(stored) ? (stored as unknown[]) : [];
  return Array.from({ length: rank }, (_, d) =>
    Array.from((lists[d] as ArrayLike<string> | undefined) ?? []).filter((path) => path !== ''),
  );
}

export function labels({ attributes, rank }: Dataset): string[] {
  const stored = attributes.has(LABELS) ? (attributes.get(LABELS) as unknown) : [];
  return Array.from({ length: rank }, (_, d) =>
    Array.isArray(stored) ? ((stored[d] as string | undefined) ?? '') : '',
  );
}

export function dimensionsOf(dataset: Dataset): Dimension[] {
  const names = labels(dataset);
  return attached(dataset).map((paths, d) => ({
    label: names[d] as string,
    scales: paths.map((path) => dataset.file.dataset(path)),
  }));
}
