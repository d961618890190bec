import type { Dataset } from '../api/dataset.ts';

/** A dimension of netCDF. Behind it is a dimension scale; a dimension that no scale describes is made up, as netcdf-c does it. */
export class Dimension {
  readonly name: string;
  /** Its number in the file. */
  readonly id: number;
  readonly unlimited: boolean;
  /** null: made up. */
  scale: Dataset | null;
  /** The scale is a variable as well. */
  isVariable: boolean;
  /** The variables that have it, and where. */
  readonly uses: { readonly dataset: Dataset; readonly axis: number }[] = [];
  readonly #length: number;

  constructor(
    name: string,
    id: number,
    scale: Dataset | null,
    { length, unlimited, isVariable }: { length: number; unlimited: boolean; isVariable: boolean },
  ) {
    this.name = name;
    this.id = id;
    this.scale = scale;
    this.#length = length;
    this.unlimited = unlimited;
    this.isVariable = isVariable;
  }

  /** An unlimited dimension is as long as the longest of its variables. */
  get size(): number {
    if (!this.unlimited) return this.#length;
    let longest = 0;
    for (const { dataset, axis } of this.uses) longest = Math.max(longest, dataset.shape[axis] ?? 0);
    return longest;
  }
}
