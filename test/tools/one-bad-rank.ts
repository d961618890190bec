import { readdirSync } from 'node:fs';
import type { Communicator } from 'h5log';
import { type DemoOptions, demo, type ReplayOptions, replay } from 'h5log/tools';
import { e3sm } from '../../src/bench/e3sm.ts';
import { type Outcome, outcomeOfAsync } from '../parallel/outcome.ts';

/** Calls that are wrong on rank `odd` only, and a right one at the end: no rank may wait for another. */
export interface Call {
  readonly name: string;
  readonly outcome: Outcome;
  /** Files of the folder afterwards. */
  readonly left: readonly string[];
}

interface Task {
  readonly folder: string;
  readonly odd: number;
}

const fail = (): never => {
  throw new Error('enough');
};

export default async (comm: Communicator, { folder, odd }: Task): Promise<Call[]> => {
  const calls: Call[] = [];
  const isOdd = comm.rank === odd;
  const note = async (name: string, work: () => Promise<unknown>): Promise<void> => {
    const outcome = await outcomeOfAsync(work);
    comm.barrier();
    calls.push({ name, outcome, left: readdirSync(folder).sort() });
    comm.barrier();
  };
  const input = `${folder}/in.h5`;
  const replaying = (name: string, bad: object, from = input, to = `${folder}/out.h5`): Promise<void> =>
    note(`replay ${name}`, () =>
      replay(isOdd ? from : input, isOdd ? to : `${folder}/out.h5`, { comm, ...((isOdd ? bad : {}) as ReplayOptions) }),
    );
  await replaying('memory', { memory: 10 });
  await replaying('force', { force: 1 });
  await replaying('another force', { force: true });
  await replaying('threads', { threads: 0 });
  await replaying('progress', { progress: 5 });
  await replaying('a progress that throws', { progress: fail });
  await replaying('an aborted signal', { signal: AbortSignal.abort(new Error('never mind')) });
  await replaying('another memory', { memory: 2 ** 21 });
  await replaying('its own input', {}, `${folder}/none.h5`);
  await replaying('its own output', {}, input, `${folder}/other.h5`);
  await replaying('the same file', {}, input, input);
  const playing = (name: string, bad: DemoOptions): Promise<void> =>
    note(`demo ${name}`, () => demo(`${folder}/demo.h5`, { comm, size: 4, steps: 1, ...(isOdd ? bad : {}) }));
  await playing('size', { size: 0 });
  await playing('too much', { size: 2 ** 30 });
  await playing('subfiles', { subfiles: -1 });
  await playing('another size', { size: 5 });
  await note('e3sm repeat', () => e3sm([`${folder}/e3sm.h5`], { comm, repeat: isOdd ? 0 : 1 }));
  await note('e3sm map', () => e3sm([`${folder}/e3sm.h5`], { comm, ...(isOdd && { map: `${folder}/none.h5` }) }));
  await note('replay right', () => replay(input, `${folder}/out.h5`, { comm }));
  return calls;
};
