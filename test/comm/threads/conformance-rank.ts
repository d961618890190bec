import type { Communicator } from '../../../src/comm/communicator.ts';
import { conform } from '../conformance.ts';

/** The conformance suite as the program of one rank. */
export default function rank(comm: Communicator): string[] {
  return conform(comm);
}
