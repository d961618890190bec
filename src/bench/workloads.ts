import { flushes } from './flushes.ts';
import { open } from './open.ts';
import { replay } from './replay.ts';
import { seal } from './seal.ts';
import { small } from './small.ts';
import { stream } from './stream.ts';
import type { Workload } from './workload.ts';

/** A workload that comes with the package. */
export interface ShippedWorkload extends Workload {
  /** The figure, in seconds, that stands for the whole of it, where one number has to be compared with another program's. */
  readonly headline: string;
}

/** All of them but E3SM's, which runs on several ranks and takes files. */
export const workloads: readonly ShippedWorkload[] = [
  { ...small, headline: 'small/shuffled/write' },
  { ...stream, headline: 'stream/async-lent' },
  { ...flushes, headline: 'flushes/total' },
  { ...open, headline: 'open/first' },
  { ...replay, headline: 'replay/small' },
  { ...seal, headline: 'seal/tiles' },
];
