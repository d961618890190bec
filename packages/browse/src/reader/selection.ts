/** A part of an array, as h5web asks for it. */
export interface Slice {
  readonly start: number[];
  readonly count: number[];
  /** The dimensions that are left: those that were not given as one index. */
  readonly dims: number[];
}

/** Parses `3,:,0:10`: one index, all, or a range in each dimension. Without a text, everything. */
export function parseSelection(text: string | undefined, shape: readonly number[]): Slice {
  const parts = text === undefined ? shape.map(() => ':') : text.split(',');
  if (parts.length !== shape.length)
    throw new Error(`the selection ${text} has ${parts.length} dimensions, the dataset ${shape.length}`);
  const slice: Slice = { start: [], count: [], dims: [] };
  for (const [d, part] of parts.entries()) {
    const [, first, colon, last] = /^(\d*)(:?)(\d*)$/.exec(part.trim()) ?? [];
    if (first === undefined || (colon === '' && first === '')) throw new Error(`${text} is not a selection`);
    const from = Number(first);
    const to = colon === '' ? from + 1 : last === '' ? (shape[d] as number) : Number(last);
    if (from > to || to > (shape[d] as number))
      throw new Error(`the selection ${text} is outside of the shape ${shape.join(' x ')}`);
    slice.start.push(from);
    slice.count.push(to - from);
    if (colon !== '') slice.dims.push(to - from);
  }
  return slice;
}

/** Copies the elements of a box into an array of shape `count` that begins at `origin`. */
export function copyBox(
  into: { [i: number]: unknown },
  origin: readonly number[],
  shape: readonly number[],
  start: readonly number[],
  count: readonly number[],
  from: ArrayLike<unknown>,
): void {
  const rank = shape.length;
  const row = count[rank - 1] ?? 1;
  const strides = new Array<number>(rank).fill(1);
  for (let d = rank - 2; d >= 0; d--) strides[d] = (strides[d + 1] as number) * (shape[d + 1] as number);
  const at = start.map((n, d) => n - (origin[d] as number));
  const place = new Array<number>(rank).fill(0);
  for (let done = 0; done < from.length; done += row) {
    let to = 0;
    for (let d = 0; d < rank; d++) to += ((at[d] as number) + (place[d] as number)) * (strides[d] as number);
    for (let i = 0; i < row; i++) into[to + i] = from[done + i];
    for (let d = rank - 2; d >= 0; d--) {
      place[d] = (place[d] as number) + 1;
      if ((place[d] as number) < (count[d] as number)) break;
      place[d] = 0;
    }
  }
}
