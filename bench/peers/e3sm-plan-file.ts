import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CdlAttribute } from '../../src/bench/cdl.ts';
import type { Decomposition, Runs } from '../../src/bench/decomposition.ts';
import { type PlannedFile, seedOf, TEXT_LENGTH } from '../../src/bench/e3sm-plan.ts';

/** A decomposition on some ranks. */
export interface Dealt {
  readonly of: Decomposition;
  /** Of each rank. */
  readonly runs: readonly Runs[];
}

/** Where a program that follows the plan puts a file. */
export function planned(folder: string, name: string, number: number): string {
  return join(folder, `${name}-${number}.h5`);
}

/** Texts have no type. */
function written({ name, value }: CdlAttribute): { name: string; type?: string; value: unknown } {
  if (typeof value === 'string' || Array.isArray(value)) return { name, value };
  const type = value.constructor.name.replace(/^Big|Array$/g, '').toLowerCase();
  return { name, type, value: Array.from(value as ArrayLike<number | bigint>, Number) };
}

/**
 * Writes down who writes what, for a program in another language: `plan.json`, and `runs.bin` with the offset and the length of every run as two int64, rank after rank. Values are
 * not in it: element p of a record is `(seed + p) & mask`, or `seed + p` where the mask is -1.
 */
export function writePlan(
  folder: string,
  files: readonly PlannedFile[],
  dealt: readonly Dealt[],
  repeat: number,
): string {
  const numbers: bigint[] = [];
  const decompositions = dealt.map(({ of: { dims }, runs }) => {
    const ranks = runs.map(({ length, offsets, lengths }) => {
      const first = numbers.length / 2;
      for (let i = 0; i < length; i++) numbers.push(BigInt(offsets[i] as number), BigInt(lengths[i] as number));
      return [first, length];
    });
    const elements = runs.reduce((sum, one) => sum + one.elements, 0);
    const size = dims.reduce((product, dim) => product * dim, 1);
    return { dims, ranks, complete: elements === size };
  });
  const plan = {
    repeat,
    decompositions,
    files: files.map(({ name, variables, attributes, groups }, i) => ({
      path: planned(folder, name, i),
      attributes: attributes.map(written),
      groups: groups.map((group) => ({ name: group.name, attributes: group.attributes.map(written) })),
      variables: variables.map((variable) => {
        const { path, type, shape, isRecord, decomposition, fill = null } = variable;
        const records = isRecord ? (shape[0] as number) : 1;
        const seeds = Array.from({ length: records }, (_, record) => seedOf(variable, record));
        const kind = { type: type ?? `S${TEXT_LENGTH}`, shape, isRecord, decomposition, fill };
        return { path, ...kind, attributes: variable.attributes.map(written), seeds };
      }),
    })),
  };
  writeFileSync(join(folder, 'runs.bin'), BigInt64Array.from(numbers));
  const path = join(folder, 'plan.json');
  writeFileSync(path, JSON.stringify(plan));
  return path;
}
