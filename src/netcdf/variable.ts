import type { Attributes } from '../api/attributes.ts';
import type { Dataset } from '../api/dataset.ts';
import { sessionOf } from '../api/handle.ts';
import { H5LogError } from '../base/errors.ts';
import { numberArray } from '../dtype/convert.ts';
import type { ArrayOf, DType, TypedArray } from '../dtype/model.ts';
import { fullType } from '../dtype/model.ts';
import { encodeFillValue } from '../log/format/properties.ts';
import { select } from '../space/select.ts';
import { type Slab, sizeOf } from '../space/shape.ts';
import { checkSlab, regularSlab } from '../space/slab.ts';
import { NcAttributes } from './attributes.ts';
import { DEFAULT_FILL, FILL_VALUE, ncType } from './conventions.ts';
import type { Dimension } from './dimension.ts';

/** A variable of netCDF: a dataset whose dimensions have names. */
export class Variable<D extends DType = DType> {
  readonly name: string;
  readonly dataset: Dataset<D>;
  readonly attributes: Attributes;
  readonly #current: () => readonly Dimension[];

  /** `current` gives its dimensions, which may be others when the file has changed. */
  constructor(name: string, dataset: Dataset<D>, classic: () => boolean, current: () => readonly Dimension[]) {
    this.name = name;
    this.dataset = dataset;
    this.#current = current;
    const { path } = dataset;
    this.attributes = new NcAttributes(dataset.attributes, {
      path,
      classic,
      check: (attribute, value) => {
        if (attribute !== FILL_VALUE) return undefined;
        // First of all: a page that only reads cannot encode values to compare them.
        sessionOf(dataset).writable();
        // What elements that were never written read as is decided when the dataset is made.
        if (!isFill(dataset as unknown as Dataset, value))
          throw new H5LogError('OPTION', `${path}: _FillValue is the fill of createVariable`, { object: path });
        // A list of texts is of netCDF's type string, whatever their length.
        return { dtype: dataset.dtype, shape: ncType(dataset.dtype) === 'char' ? [] : [1] };
      },
    });
  }

  get dimensions(): readonly string[] {
    return this.#current().map(({ name }) => name);
  }

  get shape(): readonly number[] {
    return this.#current().map(({ size }) => size);
  }

  /** Padded with fill up to the length of unlimited dimensions. */
  async read(where?: Slab): Promise<ArrayOf<D>> {
    const { dataset, shape } = this;
    const stored = dataset.shape;
    if (shape.every((size, d) => size === stored[d])) return dataset.read(where);
    const slab = regularSlab(checkSlab(where ?? {}), shape);
    const lengths = slab ? Array.from(slab.count, (count, d) => count * (slab.block[d] as number)) : [0];
    const out = filled(dataset as unknown as Dataset, sizeOf(lengths));
    if (!slab) return out as unknown as ArrayOf<D>;
    const { start, count, step: stride, block } = slab;
    shape.forEach((size, d) => {
      const last = (start[d] as number) + ((count[d] as number) - 1) * (stride[d] as number) + (block[d] as number);
      if (last > size) {
        const text = `${dataset.path}: the selection ends at ${last} in dimension ${d}, which has ${size}`;
        throw new H5LogError('SELECTION', text, { object: dataset.path });
      }
    });
    const there = stored.map((size, d) => selectedBelow(size, { start, count, stride, block }, d));
    if (there.includes(0)) return out as unknown as ArrayOf<D>;
    const zeros = stored.map(() => 0);
    const part = select.hyperslab({ start, count, stride, block }).and(select.box(zeros, stored));
    const memory = { shape: lengths, where: select.box(zeros, there) };
    if (ArrayBuffer.isView(out)) await dataset.read(part, { memory, into: out });
    else scatter(out, lengths, there, (await dataset.read(part)) as ArrayLike<unknown>);
    return out as unknown as ArrayOf<D>;
  }
}

/** Whether a value is the fill value of a dataset, in its type. */
function isFill({ dtype, fill }: Dataset, value: unknown): boolean {
  if (fill === undefined) return false;
  const own = encodeFillValue(dtype, fill);
  return encodeFillValue(dtype, value).every((byte, i) => byte === own[i]);
}

/** How many of the selected indices of a dimension are below a size. */
function selectedBelow(size: number, slab: Required<Slab>, d: number): number {
  const [start = 0, count = 0, stride = 1, block = 1] = [slab.start, slab.count, slab.stride, slab.block].map(
    (part) => part[d],
  );
  if (size <= start) return 0;
  const whole = Math.min(count, Math.floor((size - start) / stride));
  const rest = whole < count ? Math.min(block, size - start - whole * stride) : 0;
  return whole * block + rest;
}

/** Elements that were never written. */
function filled(dataset: Dataset, length: number): TypedArray | unknown[] {
  const { dtype, fill } = dataset;
  const type = ncType(dtype);
  const value = fill ?? (type && DEFAULT_FILL[type]);
  const { class: kind } = fullType(dtype);
  if (kind !== 'integer' && kind !== 'float') return new Array<unknown>(length).fill(value);
  const numbers = numberArray(dtype, length);
  (numbers as Float64Array).fill(value as number);
  return numbers;
}

/** Copies the elements of a box at the origin into an array of a larger shape. */
function scatter(
  out: unknown[],
  lengths: readonly number[],
  there: readonly number[],
  elements: ArrayLike<unknown>,
): void {
  const row = there.at(-1) ?? 1;
  const at = new Array<number>(there.length).fill(0);
  for (let from = 0; from < elements.length; from += row) {
    const to = at.reduce((place, index, d) => place * (lengths[d] as number) + index, 0);
    for (let i = 0; i < row; i++) out[to + i] = elements[from + i];
    for (let d = at.length - 2; d >= 0; d--) {
      at[d] = (at[d] as number) + 1;
      if ((at[d] as number) < (there[d] as number)) break;
      at[d] = 0;
    }
  }
}
