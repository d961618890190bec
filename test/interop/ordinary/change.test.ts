import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'vitest';
import { count } from '../../counts.ts';
import { runSync, withOracle } from '../../oracles.ts';
import { repeats, seed } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { Program, runPrograms, takeTurns } from '../program.ts';

const here = import.meta.dirname;
const folder = temporaryDirectory();

withOracle('python', 'ordinary files that h5log changes', () => {
  const name = 'changes of ordinary files';
  const programs = repeats(2000);

  test(`${programs} random programs: h5py sees the model after every flush`, {
    timeout: programs * 3000 + 60_000,
  }, async () => {
    const from = seed(name);
    const bases = Math.min(programs, 40);
    runSync('python', [join(here, 'base.py'), folder, String(bases), String(from % 2 ** 31)]);
    const make = (k: number, list: string): Program => {
      const path = join(folder, `program-${k}.h5`);
      copyFileSync(join(folder, `${k % bases}.h5`), path);
      return new Program(path, from + k, list);
    };
    count(name, await runPrograms(programs, 25, folder, make));
  });

  const turns = repeats(170);
  test(`${turns} turns of libhdf5 between our commits: both sides agree`, {
    timeout: turns * 5000 + 60_000,
  }, async () => {
    const from = seed(`${name}, with libhdf5`);
    runSync('python', [join(here, 'base.py'), folder, '2', String(from % 2 ** 31)]);
    const list = join(folder, 'turns');
    const made = [0, 1].map((libver) => {
      const path = join(folder, `turns-${libver}.h5`);
      copyFileSync(join(folder, `${libver}.h5`), path);
      return new Program(path, from + libver, list);
    });
    await takeTurns(made, turns, list);
    count(`${name}, with libhdf5`, { turns, changes: 6 * turns });
  });
});
