import type { CreateOptions } from 'h5log';
import { Model } from './model.ts';
import { type Place, positions, positionsOfMany } from './places.ts';
import type { Session } from './rank.ts';
import type { Step } from './steps.ts';
import { type Json, samples, type TypeText } from './types.ts';

type Of<Do extends Step['do']> = Extract<Step, { do: Do }>;
type More<Do extends Step['do']> = Partial<Omit<Of<Do>, 'do' | 'path'>>;

export interface PlannedSession extends Omit<Session, 'path'> {
  readonly ranks: number;
  readonly steps: Step[];
}

/** Makes the steps of a program, and does them to a model meanwhile: a write needs no list of values, only a number to make them from. */
export class Script {
  readonly model: Model;
  readonly sessions: PlannedSession[] = [];

  constructor(model = new Model()) {
    this.model = model;
  }

  /** A new file on a number of ranks. */
  create(options: CreateOptions = {}, ranks = 1): this {
    this.sessions.push({ create: options, ranks, steps: [] });
    return this;
  }

  /** The file again, to append. */
  append(ranks = 1, open: NonNullable<Session['open']> = {}): this {
    this.sessions.push({ open, ranks, steps: [] });
    return this;
  }

  add(step: Step): this {
    this.model.apply(step);
    this.sessions.at(-1)?.steps.push(step);
    return this;
  }

  group(path: string): this {
    return this.add({ do: 'group', path });
  }

  dataset(path: string, dtype: TypeText, shape: readonly number[], more: More<'dataset'> = {}): this {
    return this.add({ ...more, do: 'dataset', path, dtype, shape });
  }

  write(path: string, from: number | readonly Json[], where?: Place, more: More<'write'> = {}): this {
    const { dtype, shape } = this.model.dataset(path);
    const count = more.memory ? more.memory.shape.reduce((a, b) => a * b, 1) : positions(where, shape).length;
    const values = typeof from === 'number' ? samples(dtype, count, from) : from;
    return this.add({ ...more, do: 'write', path, dtype, values, ...(where ? { where } : {}) });
  }

  box(path: string, from: number, start: readonly number[], count: readonly number[], rank?: number): this {
    return this.write(path, from, { start, count }, rank === undefined ? {} : { rank });
  }

  many(path: string, from: number, starts: readonly number[], counts: readonly number[], rank?: number): this {
    const { dtype, shape } = this.model.dataset(path);
    const values = samples(dtype, positionsOfMany(starts, counts, shape).length, from);
    const whose = rank === undefined ? {} : { rank };
    return this.add({ do: 'writeMany', path, dtype, values, starts, counts, ...whose });
  }

  resize(path: string, shape: readonly number[]): this {
    return this.add({ do: 'resize', path, shape });
  }

  /** `from` is a number to make values from, or the values. */
  attribute(
    path: string,
    name: string,
    dtype: TypeText,
    shape: readonly number[] | null,
    from: number | readonly Json[],
    implied?: 'list' | 'value',
  ): this {
    const count = shape === null ? 0 : shape.reduce((a, b) => a * b, 1);
    const values = typeof from === 'number' ? samples(dtype, count, from) : from;
    return this.add({ do: 'attribute', path, name, dtype, shape, values, ...(implied ? { implied } : {}) });
  }

  /** `remember`: this state belongs to the expected contents. */
  flush(remember = false): this {
    return this.add({ do: 'flush', remember });
  }
}
