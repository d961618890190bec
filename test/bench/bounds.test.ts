import { beforeEach, describe, expect, test } from 'vitest';
import { reportBounds } from '../../bench/bounds.ts';
import { figures } from '../../bench/report.ts';
import type { Comparison } from '../../bench/table.ts';

function comparison(id: string, ...programs: readonly [string, number, number?][]): Comparison {
  const results = programs.map(([program, seconds, cold]) => {
    return { program, seconds, part: 1, ...(cold !== undefined && { cold }) };
  });
  return { id, what: '', results: results as unknown as Comparison['results'] };
}

describe('what we want to reach', () => {
  beforeEach(() => {
    figures.length = 0;
  });

  test('small rows: 20 times as fast as the best of h5py, and as h5wasm', () => {
    const write = comparison('small/ordered/write', ['h5log', 1], ['h5py a', 40], ['h5py b', 30], ['h5wasm', 25]);
    reportBounds([write, comparison('small/ordered/read', ['h5log', 1], ['h5wasm', 1])], true);
    expect(figures.map(({ value, least }) => [value, least])).toEqual([
      [30, 20],
      [25, 20],
    ]);
  });

  test('a stream: the rate of plain writes', () => {
    reportBounds([comparison('stream/plain', ['h5log', 0.9]), comparison('stream/async-lent', ['h5log', 1])], true);
    expect(figures.map(({ value, least }) => [value, least])).toEqual([[0.9, 0.85]]);
  });

  test('E3SM: seconds of every kind of ranks, twice as many for the first time; only of the F case', () => {
    const two = comparison('e3sm/2', ['h5log threads', 0.1, 0.15], ['h5log MPICH', 0.09], ['h5py-mpi', 9]);
    reportBounds([two], false);
    expect(figures).toEqual([]);
    reportBounds([two], true);
    expect(figures.map(({ what, value, limit }) => [what, value, limit])).toEqual([
      ['e3sm/2: h5log threads, warm', 0.1, 0.1],
      ['e3sm/2: h5log threads, cold', 0.15, 0.2],
      ['e3sm/2: h5log MPICH, warm', 0.09, 0.1],
    ]);
  });
});
