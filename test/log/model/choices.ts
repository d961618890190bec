import type { DType, Filter } from 'h5log';
import { ModelDataset, sizeOf } from './state.ts';
import { below, chance, MOST, pick, type Random, randomFilters, randomType } from './types.ts';

/** The names that datasets have; those inside groups make the groups. */
export const PATHS = ['a', 'b', 'c', 'g/a', 'g/_b', '_c', 'h/k/d', '__e'];
const WIDEST = [1, 40, 12, 6, 4, 3];

/** What a dataset is made with. */
export interface DatasetChoice {
  readonly dtype: DType;
  readonly shape: number[];
  readonly maxShape?: (number | null)[];
  readonly fill?: unknown;
  readonly chunks?: number[];
  readonly filters: Filter[];
}

/** A dataset of any type, shape, fill value and layout: how to make it, and the model of it. */
export function randomDataset(random: Random): { options: DatasetChoice; model: ModelDataset } {
  const rank = chance(random, 0.03) ? 32 : below(random, 6);
  const widest = WIDEST[rank] ?? 1;
  const shape = Array.from({ length: rank }, () => (chance(random, 0.06) ? 0 : 1 + below(random, widest)));
  const maxShape = shape.map((n) => (chance(random, 0.4) ? null : chance(random, 0.5) ? n + below(random, 4) : n));
  const limited = chance(random, 0.7);
  const type = randomType(random);
  const fill = type.heap || chance(random, 0.6) ? 0 : 1 + below(random, MOST);
  const options = {
    dtype: type.dtype,
    shape,
    ...(limited && { maxShape }),
    ...(fill > 0 && { fill: type.value(fill) }),
    ...(chance(random, 0.4) && { chunks: shape.map(() => 1 + below(random, 4)) }),
    filters: randomFilters(random),
  };
  return { options, model: new ModelDataset(type, shape, limited ? maxShape : shape, fill) };
}

/** Another shape that a dataset may have; undefined if it would be too large for a model. */
export function randomShape(
  random: Random,
  { shape, maxShape }: Pick<ModelDataset, 'shape' | 'maxShape'>,
): number[] | undefined {
  const other = shape.map((n, d) => {
    const most = Math.min(maxShape[d] ?? Infinity, WIDEST[shape.length] ?? 2);
    return chance(random, 0.4) ? Math.min(n, maxShape[d] ?? n) : below(random, most + 1);
  });
  return sizeOf(other) > 1000 ? undefined : other;
}

export const ATTRIBUTES = ['units', '_x', 'long name'];

export function randomAttribute(random: Random): number | string | boolean | Int32Array | string[] | bigint {
  return pick(random, [below(random, 1000), 'text', true, Int32Array.of(1, 2, below(random, 9)), ['a', 'bc'], 7n]);
}
