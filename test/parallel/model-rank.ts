import { join } from 'node:path';
import type { Communicator } from 'h5log';
import { figures } from '../log/model/compare.ts';
import { below, chance, type Random } from '../log/model/types.ts';
import { random as randomFrom } from '../seed.ts';
import { Machine, type StepKind, WEIGHTS } from './model-machine.ts';

export interface Programs {
  readonly seeds: readonly number[];
  readonly folder: string;
}

export interface ProgramsDone {
  readonly figures: typeof figures;
  /** How many subfiles each file has. */
  readonly parts: readonly number[];
}

const KINDS = Object.entries(WEIGHTS) as [StepKind, number][];
const TOTAL = KINDS.reduce((sum, [, weight]) => sum + weight, 0);

function randomKind(random: Random): StepKind {
  let left = random() * TOTAL;
  for (const [kind, weight] of KINDS) {
    left -= weight;
    if (left < 0) return kind;
  }
  return 'post';
}

export const fileOf = (folder: string, seed: number): string => join(folder, `${seed}.h5`);

/** Runs many programs, one after the other. */
export default async function rank(comm: Communicator, { seeds, folder }: Programs): Promise<ProgramsDone> {
  const parts: number[] = [];
  for (const seed of seeds) parts.push(await run(comm, seed, fileOf(folder, seed)));
  return { figures, parts };
}

async function run(comm: Communicator, seed: number, path: string): Promise<number> {
  const random = randomFrom(seed);
  let now = 'creating';
  try {
    const machine = await Machine.start(comm, path, random);
    const first = 1 + below(random, 4);
    const steps = first + 1 + below(random, chance(random, 0.2) ? 60 : 25);
    for (let i = 0; i < steps; i++) {
      const kind = i < first ? 'makeDataset' : randomKind(random);
      now = `step ${i} (${kind})`;
      await machine.step(kind, random);
    }
    now = 'the end';
    await machine.end(random);
    figures.programs++;
    return machine.parts;
  } catch (error) {
    const { message, stack } = error as Error;
    const text = `program ${seed}, ${now}, rank ${comm.rank} of ${comm.size}: ${message}`;
    throw Object.assign(new Error(text, { cause: error }), { stack: `${text}\n${stack}` });
  }
}
