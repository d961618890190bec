import { describe, expect, test } from 'vitest';
import { type MpiTask, mpiLacks, WAYS, writeWithMpi } from '../../bench/peers/h5py-mpi.ts';
import { parseCdl } from '../../src/bench/cdl.ts';
import { runsOf } from '../../src/bench/decomposition.ts';
import { generateHeader, generateMap } from '../../src/bench/e3sm.ts';
import { type Checked, FileReader } from '../../src/bench/e3sm-files.ts';
import { planFiles } from '../../src/bench/e3sm-plan.ts';
import { solo } from '../../src/comm/solo.ts';
import { temporaryDirectory } from '../temporary.ts';

const lacks = await mpiLacks();
if (lacks !== undefined) process.stdout.write(`skipped: E3SM with parallel HDF5 (${lacks})\n`);

/** Runs above one another and others, elements that nobody writes, records, letters and texts, a third dimension. */
const SIZES = { columns: 30, levels: 4, cells: 6, layers: 5, grid: 40, processes: 4 };
const MAP = generateMap(SIZES);
const HEADER = generateHeader(SIZES)
  .replace('time = UNLIMITED ; // (1 currently)', 'time = UNLIMITED ; // (2 currently)')
  .replace('\tdouble P0 ;', '\tstring label(nbnd) ;\n\tshort deep(nbnd, lev, ncol) ;\n\tdouble P0 ;')
  // Some of each kind are enough.
  .replace(/^\t(float |\t)?(SURFACE|LEVELS|ocean|LAND)\d\d+[(:].*\n/gm, '');
const DEEP = {
  name: 'D5',
  dims: [2, 4, 30],
  counts: Float64Array.of(2, 1, 0, 1),
  offsets: Float64Array.of(0, 90, 60, 120),
  lengths: Float64Array.of(60, 30, 30, 120),
};

describe.skipIf(lacks !== undefined)('E3SM with parallel HDF5', () => {
  test.each(WAYS)('writes what the plan says, %s', async (way) => {
    const map = [...MAP, DEEP];
    const ranks = 2;
    const files = planFiles([parseCdl(HEADER)], map, { records: [], sizes: {}, double: true });
    const dealt = map.map((of) => ({ of, runs: [0, 1].map((rank) => runsOf(of, rank, ranks)) }));
    const task: MpiTask = { folder: temporaryDirectory(), files, dealt, ranks, repeat: 2 };
    const outcome = await writeWithMpi(way, task);
    if ('moreThan' in outcome) throw new Error('it took too long');
    expect(outcome.times).toHaveLength(2);
    for (const seconds of outcome.times) expect(seconds).toBeGreaterThan(0);
    const checked: Checked = { verified: 0, wrong: 0, first: undefined };
    files.forEach((file, i) => {
      new FileReader(solo(), map).read(outcome.paths[i] as string, file, checked);
    });
    expect(checked.first).toBe(undefined);
    expect(checked.wrong).toBe(0);
    const elements = files.flatMap(({ variables }) => variables.map(({ shape }) => shape.reduce((a, b) => a * b, 1)));
    expect(checked.verified).toBe(elements.reduce((a, b) => a + b));
  });
});
