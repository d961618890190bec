import { position, product, range } from '../../space/model.ts';
import { MOST, type ModelType, shown } from './types.ts';

type Shape = readonly number[];

export const sizeOf = (shape: Shape): number => shape.reduce((a, b) => a * b, 1);

/** A dataset as plain arrays: a small number for each element. */
export class ModelDataset {
  readonly type: ModelType;
  readonly maxShape: readonly (number | null)[];
  readonly fill: number;
  shape: Shape;
  values: Uint8Array;
  attributes = new Map<string, unknown>();

  constructor(type: ModelType, shape: Shape, maxShape: readonly (number | null)[], fill: number) {
    this.type = type;
    this.shape = shape;
    this.maxShape = maxShape;
    this.fill = fill;
    this.values = new Uint8Array(sizeOf(shape)).fill(fill);
  }

  /** Item i goes to point i; of equal points the later counts. */
  write(at: readonly Shape[], values: readonly number[]): void {
    at.forEach((point, i) => {
      this.values[position(point, this.shape)] = values[i] as number;
    });
  }

  read(at: readonly Shape[]): number[] {
    return at.map((point) => this.values[position(point, this.shape)] as number);
  }

  resize(shape: Shape): void {
    const values = new Uint8Array(sizeOf(shape)).fill(this.fill);
    const kept = product(shape.map((n, d) => range(0, Math.min(n, this.shape[d] as number))));
    for (const at of kept) values[position(at, shape)] = this.values[position(at, this.shape)] as number;
    this.shape = shape;
    this.values = values;
  }

  clone(): ModelDataset {
    const copy = new ModelDataset(this.type, this.shape, this.maxShape, this.fill);
    copy.values = this.values.slice();
    copy.attributes = new Map(this.attributes);
    return copy;
  }
}

/** A file as plain maps; two names may lead to one dataset. */
export class ModelFile {
  datasets = new Map<string, ModelDataset>();
  attributes = new Map<string, unknown>();

  clone(): ModelFile {
    const copy = new ModelFile();
    const twins = new Map<ModelDataset, ModelDataset>();
    for (const [path, dataset] of this.datasets) {
      let twin = twins.get(dataset);
      if (!twin) {
        twin = dataset.clone();
        twins.set(dataset, twin);
      }
      copy.datasets.set(path, twin);
    }
    copy.attributes = new Map(this.attributes);
    return copy;
  }
}

export class Difference extends Error {}

/** Compares what a read gave with small numbers, element by element. */
export function compareValues(
  what: string,
  type: ModelType,
  got: unknown,
  expected: readonly number[] | Uint8Array,
): void {
  const list = got as ArrayLike<unknown>;
  if (list.length !== expected.length)
    throw new Difference(`${what}: ${list.length} elements, expected ${expected.length}`);
  for (let i = 0; i < expected.length; i++) {
    const wanted = type.value(expected[i] as number);
    const same = typeof wanted === 'object' ? shown(list[i]) === shown(wanted) : list[i] === wanted;
    if (!same)
      throw new Difference(
        `${what}: element ${i} is ${shown(list[i])}, expected ${shown(wanted)} (all: ${shown(got)} / ${shown([...expected])})`,
      );
  }
}

export function compareNumbers(
  what: string,
  type: ModelType,
  got: ArrayLike<number | bigint>,
  expected: readonly number[],
): void {
  if (got.length !== expected.length)
    throw new Difference(`${what}: ${got.length} elements, expected ${expected.length}`);
  for (let i = 0; i < expected.length; i++) {
    const v = expected[i] as number;
    const wanted = v > MOST ? v : Number(type.value(v));
    if (Number(got[i]) !== wanted) throw new Difference(`${what}: element ${i} is ${got[i]}, expected ${wanted}`);
  }
}

export function compareBytes(what: string, type: ModelType, got: Uint8Array, expected: readonly number[]): void {
  const bytes = expected.flatMap((v) => type.raw(v));
  if (Buffer.compare(got, Uint8Array.from(bytes)) !== 0) {
    throw new Difference(
      `${what}: bytes ${Buffer.from(got).toString('hex')}, expected ${Buffer.from(bytes).toString('hex')}`,
    );
  }
}
