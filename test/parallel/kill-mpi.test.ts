import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { File } from 'h5log';
import { describe, expect, test } from 'vitest';
import { type MpiResult, runMpi, withEachMpi } from '../comm/mpi/job.ts';
import { count } from '../counts.ts';
import { random, repeats, seed } from '../seed.ts';
import { temporaryDirectory } from '../temporary.ts';
import { LAYOUTS } from './layouts.ts';
import { checkRows } from './rows.ts';

const folder = temporaryDirectory();
const program = new URL('./programs/endless.ts', import.meta.url);
const RANKS = 3;

/** The commits that were reported so far, the newest last. */
function reported(place: string): number[] {
  const path = join(place, 'reported');
  if (!existsSync(path)) return [];
  // The last line may be half written.
  return readFileSync(path, 'utf8').split('\n').slice(0, -1).map(Number);
}

const pause = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

async function untilReported(place: string, count: number, job: Promise<MpiResult>): Promise<void> {
  let ended: MpiResult | undefined;
  void job.then((result) => {
    ended = result;
  });
  while (reported(place).length < count) {
    if (ended) throw new Error(`the job ended too early with code ${ended.code}: ${ended.stderr}`);
    await pause(5);
  }
}

/** The launcher may be faster in ending than the ranks that it has killed, and the dying still hold the lock. */
async function untilGone(place: string): Promise<void> {
  for (let r = 0; r < RANKS; r++) {
    const pid = readFileSync(join(place, `pid.${r}`), 'utf8');
    const isThere = (): boolean => {
      try {
        const [state, ...fields] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
        // Some threads of a zombie may still be dying; as long as they are, the lock is not given up.
        return (state !== 'Z' && state !== 'X') || Number(fields[16]) > 1;
      } catch {
        return false;
      }
    };
    for (let waited = 0; waited < 5000 && isThere(); waited += 5) await pause(5);
  }
}

/** What was reported is there, all of it; the lock of the dead is taken over and more can be written. */
function mustStand(place: string): number {
  const path = join(place, 'rows.h5');
  const last = reported(place).at(-1) ?? 0;
  const { rows, sequence } = checkRows(path, RANKS);
  expect(sequence).toBeGreaterThanOrEqual(last);
  // Commit 0 is the creation of the file; each one after that adds a row.
  expect(rows).toBe(sequence);
  const file = File.openSync(path, { mode: 'r+' });
  file.attributes.set('seen', rows);
  file.closeSync();
  expect(checkRows(path, RANKS).rows).toBe(rows);
  return rows;
}

withEachMpi('ranks that are killed', (mpi) => {
  const each = Math.max(2, Math.ceil(repeats(50) / 2));
  const next = random(seed(`kill ${mpi}`));
  let trial = 0;
  let first = seed(`layouts ${mpi}`);

  const start = (options: object): { place: string; job: Promise<MpiResult> } => {
    const place = join(folder, `${mpi}-${trial++}`);
    mkdirSync(place);
    const args = [place, JSON.stringify(options)];
    return { place, job: runMpi({ mpi, ranks: RANKS, program, args, timeout: 120_000 }) };
  };

  describe(`kill -9 on ${mpi}`, () => {
    test.each(['one rank', 'all ranks'])(
      `of %s, ${each} times`,
      async (whom) => {
        let rows = 0;
        let slowest = 0;
        for (let i = 0; i < each; i++) {
          const { place, job } = start({ subfiles: i % 3 === 2 ? 2 : 0, ...LAYOUTS[first++ % LAYOUTS.length] });
          await untilReported(place, 1 + Math.floor(next() * 3), job);
          await pause(next() * 100);
          const pids = Array.from({ length: RANKS }, (_, r) => Number(readFileSync(join(place, `pid.${r}`), 'utf8')));
          const victims = whom === 'one rank' ? [pids[Math.floor(next() * RANKS)] as number] : pids;
          const killed = performance.now();
          for (const pid of victims) {
            try {
              process.kill(pid, 'SIGKILL');
            } catch (error) {
              // The launcher was faster.
              expect((error as NodeJS.ErrnoException).code).toBe('ESRCH');
            }
          }
          const { code } = await job;
          slowest = Math.max(slowest, performance.now() - killed);
          await untilGone(place);
          expect(code).not.toBe(0);
          rows += mustStand(place);
        }
        count(`kill -9 of ${whom}, ${mpi}`, { jobs: each, rows });
        process.stdout.write(`${mpi}, ${whom} killed: ended within ${Math.round(slowest)} ms\n`);
      },
      1_200_000,
    );
  });

  test(`a rank of ${mpi} that throws in the middle of a step ends the job, and the file stands at the last commit`, async () => {
    for (const failing of [1, 3]) {
      const { place, job } = start({ failing });
      const { code, stderr } = await job;
      await untilGone(place);
      expect(code).not.toBe(0);
      expect(stderr.split('trouble in the middle of a step').length - 1, stderr).toBe(1);
      expect(reported(place).length).toBe(failing);
      expect(mustStand(place)).toBe(failing);
    }
  }, 120_000);
});
