/** How a square field is cut into tiles, one a rank, and which value each element has in the end. */
export interface Field {
  readonly ranks: number;
  /** Elements a side. */
  readonly size: number;
  readonly steps: number;
}

/** A range of rows or columns, `end` excluded. */
export interface Band {
  readonly start: number;
  readonly end: number;
}

/** The most nearly square grid of that many tiles: rows and columns of tiles. */
export function gridOf(ranks: number): readonly [number, number] {
  let rows = Math.floor(Math.sqrt(ranks));
  while (ranks % rows !== 0) rows--;
  return [rows, ranks / rows];
}

/** Part `part` of `parts` of so many elements; sizes differ by one at most. */
export function bandOf(part: number, parts: number, size: number): Band {
  return { start: Math.floor((part * size) / parts), end: Math.floor(((part + 1) * size) / parts) };
}

/** The same with one more element on each side, as far as there are some; a band without elements stays so. */
export function withHalo({ start, end }: Band, size: number): Band {
  return start === end ? { start, end } : { start: Math.max(0, start - 1), end: Math.min(size, end + 1) };
}

/** Rows and columns of a rank's tile with its halo: what the rank writes in every step. */
export function tileOf({ ranks, size }: Field, rank: number): { readonly rows: Band; readonly columns: Band } {
  const [down, across] = gridOf(ranks);
  const rows = bandOf(Math.floor(rank / across), down, size);
  const columns = bandOf(rank % across, across, size);
  // A tile without elements has no halo in the other direction either.
  if (rows.start === rows.end || columns.start === columns.end) return { rows: nowhere, columns: nowhere };
  return { rows: withHalo(rows, size), columns: withHalo(columns, size) };
}

const nowhere: Band = { start: 0, end: 0 };

/**
 * What a rank writes to an element. It tells step, place and writer, so that an element which a wrong rank, a wrong step or
 * nobody wrote is noticed; a whole number that float64 holds exactly.
 */
export function elementValue({ ranks, size }: Field, step: number, row: number, column: number, rank: number): number {
  return ((step * size + row) * size + column) * ranks + rank + 1;
}

/** Of the bands whose halo reaches an element the last, for each element of a side: of ranks in one flush the highest wins. */
export function lastWriters(parts: number, size: number): Uint32Array {
  const last = new Uint32Array(size);
  for (let part = 0; part < parts; part++) {
    const { start, end } = withHalo(bandOf(part, parts, size), size);
    last.fill(part, start, end);
  }
  return last;
}
