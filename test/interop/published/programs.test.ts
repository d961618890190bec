import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { count } from '../../counts.ts';
import { keepInput } from '../../failures.ts';
import { run, withOracle } from '../../oracles.ts';
import { repeats, seed } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { byH5py, byH5wasm, Program } from '../program.ts';

const compare = join(import.meta.dirname, '..', 'ordinary', 'compare.py');
const folder = temporaryDirectory();

withOracle('python', 'logs that publish', () => {
  const name = 'published logs';
  const programs = repeats(2000);

  test(`${programs} random programs: h5py sees the model wherever it is published`, {
    timeout: programs * 3000 + 60_000,
  }, async () => {
    const from = seed(name);
    let states = 0;
    let steps = 0;
    for (let i = 0; i < programs; ) {
      const list = join(folder, `list-${i}`);
      const done: Program[] = [];
      for (let k = 0; k < 40 && i < programs; k++, i++) {
        const program = new Program(join(folder, `program-${i}.h5`), from + i, list, true);
        try {
          for (let s = 0; s < 30; s++) program.step();
          program.end();
          await Promise.resolve();
          expect(program.failed).toBe(undefined);
        } catch (error) {
          program.giveUp();
          keepInput(`published-${i}`, program.steps.join('\n'));
          throw new Error(`program ${i} (seed ${from + i}): ${program.steps.slice(-12).join('; ')}`, { cause: error });
        }
        done.push(program);
        steps += program.steps.length;
      }
      const wrong = await run('python', [compare, list]).catch((error: Error) => error.message);
      expect(wrong).toBe('');
      for (const { path, flushes: made } of done) {
        states += made;
        for (let s = 0; s < made; s++) rmSync(`${path}.${s}`);
        rmSync(path);
      }
    }
    count(name, { programs, steps, 'states compared with h5py': states });
  });

  const turns = repeats(170);
  test(`${turns} turns of libhdf5 between our commits: both sides agree`, {
    timeout: turns * 5000 + 60_000,
  }, async () => {
    const from = seed(`${name}, with libhdf5`);
    const list = join(folder, 'turns');
    for (const k of [0, 1]) {
      const program = new Program(join(folder, `turns-${k}.h5`), from + k, list, true);
      try {
        for (let turn = 0; turn < turns / 2; turn++) {
          for (let step = 0; step < 6; step++) program.step();
          await program.exchange(turn % 2 === 0 ? byH5py : byH5wasm);
        }
        program.end();
      } catch (error) {
        program.giveUp();
        throw new Error(`seed ${from + k}: ${program.steps.slice(-12).join('; ')}`, { cause: error });
      }
    }
    const wrong = await run('python', [compare, list]).catch((error: Error) => error.message);
    expect(wrong).toBe('');
    count(`${name}, with libhdf5`, { turns, changes: 6 * turns });
  });
});
