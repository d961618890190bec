import { type Selection, select, type Where } from 'h5log';

/** A selection as JSON. */
export type Place =
  | {
      readonly start?: readonly number[];
      readonly count?: readonly number[];
      readonly stride?: readonly number[];
      readonly block?: readonly number[];
    }
  | { readonly points: readonly (readonly number[])[] }
  | { readonly boxes: readonly { readonly start: readonly number[]; readonly count: readonly number[] }[] }
  | { readonly or: readonly [Place, Place] }
  | { readonly and: readonly [Place, Place] }
  | { readonly xor: readonly [Place, Place] }
  | { readonly minus: readonly [Place, Place] };

/** The selection as the library takes it. */
export function whereOf(place: Place): Where {
  if ('points' in place) return select.points(place.points);
  if ('boxes' in place) {
    return select.blocks(
      place.boxes.map(({ start }) => start),
      place.boxes.map(({ count }) => count),
    );
  }
  for (const how of ['or', 'and', 'xor', 'minus'] as const) {
    const pair = (place as Readonly<Record<string, readonly [Place, Place]>>)[how];
    if (pair) return selectionOf(pair[0])[how](whereOf(pair[1]));
  }
  return place as Where;
}

function selectionOf(place: Place): Selection {
  const where = whereOf(place);
  return 'or' in where ? where : select.hyperslab(where);
}

/** Positions of the selected elements in the row-major array, in the order in which their data comes. */
export function positions(place: Place | undefined, shape: readonly number[]): number[] {
  if (place && 'points' in place) return place.points.map((point) => positionOf(point, shape));
  const found: number[] = [];
  const size = shape.reduce((a, b) => a * b, 1);
  for (let at = 0; at < size; at++) if (!place || holds(place, coordinatesOf(at, shape), shape)) found.push(at);
  return found;
}

/** Positions of blocks one after the other, as writeMany takes them. */
export function positionsOfMany(
  starts: readonly number[],
  counts: readonly number[],
  shape: readonly number[],
): number[] {
  const rank = shape.length;
  return Array.from({ length: starts.length / rank }, (_, i) => {
    const start = starts.slice(i * rank, (i + 1) * rank);
    const count = counts.length === rank ? counts : counts.slice(i * rank, (i + 1) * rank);
    return positions({ start, count }, shape);
  }).flat();
}

export function positionOf(point: readonly number[], shape: readonly number[]): number {
  return point.reduce((at, coordinate, d) => at * (shape[d] as number) + coordinate, 0);
}

export function coordinatesOf(position: number, shape: readonly number[]): number[] {
  const point: number[] = [];
  let rest = position;
  for (let d = shape.length - 1; d >= 0; d--) {
    point[d] = rest % (shape[d] as number);
    rest = Math.floor(rest / (shape[d] as number));
  }
  return point;
}

function holds(place: Place, point: readonly number[], shape: readonly number[]): boolean {
  const has = (one: Place): boolean => holds(one, point, shape);
  if ('points' in place) return place.points.some((other) => other.every((c, d) => c === point[d]));
  if ('boxes' in place) return place.boxes.some(has);
  if ('or' in place) return has(place.or[0]) || has(place.or[1]);
  if ('and' in place) return has(place.and[0]) && has(place.and[1]);
  if ('xor' in place) return has(place.xor[0]) !== has(place.xor[1]);
  if ('minus' in place) return has(place.minus[0]) && !has(place.minus[1]);
  return point.every((coordinate, d) => {
    const from = coordinate - (place.start?.[d] ?? 0);
    const stride = place.stride?.[d] ?? 1;
    const block = place.block?.[d] ?? 1;
    if (from < 0) return false;
    // Without a count the selection goes on to the end, in whole blocks.
    const room = (shape[d] as number) - (place.start?.[d] ?? 0) - block;
    const count = place.count?.[d] ?? Math.floor(room / stride) + 1;
    return Math.floor(from / stride) < count && from % stride < block;
  });
}
