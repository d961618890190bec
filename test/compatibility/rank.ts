import { type Communicator, type CreateOptions, File } from 'h5log';
import { doStep, type Step } from './steps.ts';

/** A time during which a file is open, on one rank or on several. */
export interface Session {
  readonly path: string;
  /** Options of a new file; without them the file is opened to append. */
  readonly create?: CreateOptions;
  /** Options of opening it. */
  readonly open?: { readonly checksum?: boolean; readonly durability?: 'process' | 'power' };
  readonly steps: readonly Step[];
}

export interface CommitFacts {
  readonly sequence: number;
  readonly time: string;
  readonly requests: number;
  readonly bytes: number;
}

/** Does all steps and closes the file; gives the commits that the flushes made. */
export function runSession({ path, create, open, steps }: Session, comm?: Communicator): CommitFacts[] {
  const given = comm ? { comm } : {};
  const file = create
    ? File.createSync(path, { ...create, ...given })
    : File.openSync(path, { ...open, ...given, mode: 'r+' });
  const commits = doSteps(file, steps);
  file.closeSync();
  return commits;
}

export function doSteps(file: File, steps: readonly Step[]): CommitFacts[] {
  const commits: CommitFacts[] = [];
  for (const step of steps) {
    const commit = doStep(file, step);
    if (!commit) continue;
    const { sequence, time, requests, bytes } = commit;
    commits.push({ sequence, time: time.toISOString(), requests, bytes });
  }
  return commits;
}

export default (comm: Communicator, session: Session): CommitFacts[] => runSession(session, comm);
