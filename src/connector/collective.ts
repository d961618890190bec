import { agreed, type Outcome } from '../comm/agreement.ts';
import type { Communicator } from '../comm/communicator.ts';
import type { Io } from '../storage/drive.ts';

/** Does something on every rank; when it fails on one, the same error is thrown on all. */
export function* jointly<T>(comm: Communicator, io: Io<T>): Io<T> {
  if (comm.size === 1) return yield* io;
  let outcome: Outcome<T>;
  try {
    outcome = { result: yield* io };
  } catch (error) {
    outcome = { error };
  }
  return agreed(comm, outcome);
}
