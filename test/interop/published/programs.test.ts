import { join } from 'node:path';
import { test } from 'vitest';
import { count } from '../../counts.ts';
import { withOracle } from '../../oracles.ts';
import { repeats, seed } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { Program, runPrograms, takeTurns } from '../program.ts';

const folder = temporaryDirectory();

withOracle('python', 'logs that publish', () => {
  const name = 'published logs';
  const programs = repeats(2000);

  test(`${programs} random programs: h5py sees the model wherever it is published`, {
    timeout: programs * 3000 + 60_000,
  }, async () => {
    const from = seed(name);
    const make = (k: number, list: string): Program =>
      new Program(join(folder, `program-${k}.h5`), from + k, list, true);
    count(name, await runPrograms(programs, 30, folder, make));
  });

  const turns = repeats(170);
  test(`${turns} turns of libhdf5 between our commits: both sides agree`, {
    timeout: turns * 5000 + 60_000,
  }, async () => {
    const from = seed(`${name}, with libhdf5`);
    const list = join(folder, 'turns');
    const made = [0, 1].map((k) => new Program(join(folder, `turns-${k}.h5`), from + k, list, true));
    await takeTurns(made, turns, list);
    count(`${name}, with libhdf5`, { turns, changes: 6 * turns });
  });
});
