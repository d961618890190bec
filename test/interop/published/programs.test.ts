import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { File } from 'h5log';
import { test } from 'vitest';
import { count } from '../../counts.ts';
import { checkLogFile, readAsOriginal, seenByH5py } from '../../log/format/check-log.ts';
import { run, withOracle } from '../../oracles.ts';
import { full, repeats, seed } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { Program, runPrograms, takeTurns } from '../program.ts';

const folder = temporaryDirectory();

const looked = {
  'states shown to ncdump': 0,
  'states shown to h5dump': 0,
  'states by the rules of the original': 0,
  'datasets as the original reads them': 0,
};

/** Every HDF5 program opens the states, and the original reads in them what h5log does. */
async function look(states: readonly string[]): Promise<void> {
  for (let i = 0; i < states.length; i += 50) await run('h5dump', ['-H', ...states.slice(i, i + 50)]);
  looked['states shown to h5dump'] += states.length;
  const sample = states.filter((_, i) => full || i % 8 === 0);
  for (const path of sample) await run('ncdump', ['-h', path]);
  looked['states shown to ncdump'] += sample.length;
  seenByH5py(sample).forEach((seen, i) => {
    const path = sample[i] as string;
    const bytes = readFileSync(path);
    const checked = checkLogFile(bytes, seen);
    const file = File.openSync(path);
    for (const { id, path: object } of checked.anchors.values()) {
      const raw = readAsOriginal(bytes, checked, id);
      if (raw) looked['datasets as the original reads them']++;
      if (raw && !raw.equals(file.dataset(object).readSync(undefined, { raw: true })))
        throw new Error(`${path} ${object}: the original reads something else`);
    }
    file.closeSync();
  });
  looked['states by the rules of the original'] += sample.length;
}

withOracle(['python', 'h5dump', 'ncdump'], 'logs that publish', () => {
  const name = 'published logs';
  const programs = repeats(2000);

  test(`${programs} random programs: h5py sees the model wherever it is published`, {
    timeout: programs * 3000 + 60_000,
  }, async () => {
    const from = seed(name);
    const make = (k: number, list: string): Program =>
      new Program(join(folder, `program-${k}.h5`), from + k, list, true);
    const done = await runPrograms(programs, 30, folder, make, look);
    count(name, { ...done, ...looked });
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
