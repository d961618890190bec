import type { Dataset, TypedArray } from 'h5log';
import { type Chosen, randomMany, randomMemory } from './selections.ts';
import { type ModelDataset, sizeOf } from './state.ts';
import { below, chance, MOST, type Random, source } from './types.ts';

/** A post that can be made, and what it does to the model. */
export interface Post {
  readonly at: readonly (readonly number[])[];
  readonly values: readonly number[];
  /** Bytes that will be pending. */
  readonly bytes: number;
  /** Requests that it counts as; null where that depends on how blocks join. */
  readonly requests: number | null;
  /** The buffer that is posted from, if it is one, and whether it is the caller's again at once. */
  readonly view: TypedArray | null;
  readonly copy: boolean;
  make(dataset: Dataset): void;
}

/** Data for a selection: of any kind of array, perhaps spread in memory, perhaps lent. */
export function randomPost(random: Random, model: ModelDataset, { where, at }: Chosen): Post {
  const values = at.map(() => below(random, MOST + 1));
  const memory = chance(random, 0.2) ? randomMemory(random, at.length) : null;
  const inMemory = memory ? new Array<number>(sizeOf(memory.shape)).fill(0) : values;
  memory?.places.forEach((place, i) => {
    inMemory[place] = values[i] as number;
  });
  // A place that was taken twice holds the later value.
  const written = memory ? memory.places.map((place) => inMemory[place] as number) : values;
  const { data, view } = source(random, model.type, inMemory);
  const copy = !view || chance(random, 0.7);
  const options = {
    ...(copy ? {} : { copy: false }),
    ...(memory && { memory: { shape: memory.shape, ...(memory.where && { where: memory.where }) } }),
  };
  const distinct = new Set(at.map(String)).size;
  const given = Object.keys(options).length > 0 ? options : undefined;
  return {
    at,
    values: written,
    bytes: distinct * model.type.size + (at.length > 0 ? heapBytes(model, inMemory) : 0),
    requests: 1,
    view,
    copy,
    make: (dataset) => dataset.write(data as TypedArray, where, given),
  };
}

/** What values take in a heap. */
function heapBytes({ type }: ModelDataset, values: readonly number[]): number {
  return values.reduce((sum, v) => sum + (type.heap?.(v) ?? 0), 0);
}

/** Many blocks in one call. */
export function randomManyPost(random: Random, model: ModelDataset): Post {
  const { starts, counts, at } = randomMany(random, model.shape);
  const values = at.map(() => below(random, MOST + 1));
  const { data, view } = source(random, model.type, values);
  const copy = !view || chance(random, 0.7);
  return {
    at,
    values,
    bytes: at.length * model.type.size + heapBytes(model, values),
    requests: null,
    view,
    copy,
    make: (dataset) => dataset.writeMany(data as TypedArray, starts, counts, copy ? undefined : { copy: false }),
  };
}

/** The caller has the buffer back, and uses it for something else. */
export function scribble(view: TypedArray): void {
  new Uint8Array(view.buffer, view.byteOffset, view.byteLength).fill(0x6b);
}
