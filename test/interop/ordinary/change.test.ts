import { copyFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { count } from '../../counts.ts';
import { keepInput } from '../../failures.ts';
import { run, runSync, withOracle } from '../../oracles.ts';
import { repeats, seed } from '../../seed.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { byH5py, byH5wasm, Program } from '../program.ts';

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
    let flushes = 0;
    let steps = 0;
    let references = 0;
    for (let i = 0; i < programs; ) {
      const list = join(folder, `list-${i}`);
      const done: Program[] = [];
      for (let k = 0; k < 40 && i < programs; k++, i++) {
        const path = join(folder, `program-${i}.h5`);
        copyFileSync(join(folder, `${i % bases}.h5`), path);
        const program = new Program(path, from + i, list);
        try {
          for (let s = 0; s < 25; s++) program.step();
          program.end();
          await Promise.resolve();
          expect(program.failed).toBe(undefined);
        } catch (error) {
          program.giveUp();
          keepInput(`ordinary-${i}`, program.steps.join('\n'));
          throw new Error(`program ${i} (seed ${from + i}): ${program.steps.slice(-12).join('; ')}`, { cause: error });
        }
        done.push(program);
        steps += program.steps.length;
        references += program.references;
      }
      const wrong = await run('python', [join(here, 'compare.py'), list]).catch((error: Error) => error.message);
      expect(wrong).toBe('');
      for (const { path, flushes: made } of done) {
        flushes += made;
        for (let s = 0; s < made; s++) rmSync(`${path}.${s}`);
        rmSync(path);
      }
    }
    expect(references).toBeGreaterThan(0);
    count(name, { programs, steps, references, 'states compared with h5py': flushes });
  });

  const turns = repeats(170);
  test(`${turns} turns of libhdf5 between our commits: both sides agree`, {
    timeout: turns * 5000 + 60_000,
  }, async () => {
    const from = seed(`${name}, with libhdf5`);
    runSync('python', [join(here, 'base.py'), folder, '2', String(from % 2 ** 31)]);
    const list = join(folder, 'turns');
    for (const libver of [0, 1]) {
      const path = join(folder, `turns-${libver}.h5`);
      copyFileSync(join(folder, `${libver}.h5`), path);
      const program = new Program(path, from + libver, list);
      try {
        for (let turn = 0; turn < turns / 2; turn++) {
          for (let step = 0; step < 6; step++) program.step();
          await program.exchange(turn % 2 === 0 ? byH5py : byH5wasm);
        }
        program.end();
      } catch (error) {
        program.giveUp();
        throw new Error(`seed ${from + libver}: ${program.steps.slice(-12).join('; ')}`, { cause: error });
      }
    }
    const wrong = await run('python', [join(here, 'compare.py'), list]).catch((error: Error) => error.message);
    expect(wrong).toBe('');
    count(`${name}, with libhdf5`, { turns, changes: 6 * turns });
  });
});
