import type { Dataset } from 'h5log';
import { figures } from './compare.ts';
import { randomMany, randomMemory, randomWhere } from './selections.ts';
import { compareBytes, compareNumbers, compareValues, Difference, type ModelDataset, sizeOf } from './state.ts';
import { chance, MOST, type Random, randomArray } from './types.ts';

/** A dataset of a file and the model of it. */
export interface Pair {
  readonly path: string;
  readonly model: ModelDataset;
  readonly dataset: Dataset;
}

/** Reads any selection in any form and compares. What is expected is what the model is when this is called. */
export async function compareRead(random: Random, { path, model, dataset }: Pair, now: boolean): Promise<void> {
  const { type } = model;
  const { where, at } = randomWhere(random, model.shape);
  const expected = model.read(at);
  figures.compared += at.length;
  const what = `${now ? 'readSync' : 'read'} of ${path}`;
  const form = random();
  const memory = chance(random, 0.2) ? randomMemory(random, at.length) : null;
  const common = memory ? { memory: { shape: memory.shape, ...(memory.where && { where: memory.where }) } } : {};
  const size = memory ? sizeOf(memory.shape) : at.length;
  const spread = (background: number): number[] => {
    const all = new Array<number>(size).fill(background);
    memory?.places.forEach((place, i) => {
      all[place] = expected[i] as number;
    });
    return memory ? all : expected;
  };
  if (form < 0.2 && !type.heap) {
    const wanted = spread(0);
    const got = now
      ? dataset.readSync(where, { ...common, raw: true })
      : await dataset.read(where, { ...common, raw: true });
    compareBytes(what, type, got, wanted);
  } else if (form < 0.5 && type.isNumber) {
    const wanted = spread(MOST + 11);
    const into = randomArray(random, size, MOST + 11);
    const got = now ? dataset.readSync(where, { ...common, into }) : await dataset.read(where, { ...common, into });
    if (got !== into) throw new Difference(`${what}: not the array it was given`);
    compareNumbers(`${what} into`, type, into as ArrayLike<number | bigint>, wanted);
  } else {
    const wanted = spread(0);
    compareValues(what, type, now ? dataset.readSync(where, common) : await dataset.read(where, common), wanted);
  }
}

/** The same for several blocks in one call. */
export async function compareReadMany(random: Random, { path, model, dataset }: Pair, now: boolean): Promise<void> {
  const { starts, counts, at } = randomMany(random, model.shape);
  const expected = model.read(at);
  figures.compared += at.length;
  const got = now ? dataset.readManySync(starts, counts) : await dataset.readMany(starts, counts);
  compareValues(`readMany of ${path}`, model.type, got, expected);
}
