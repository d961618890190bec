import { flushes } from './flushes.ts';
import { layouts } from './layouts.ts';
import { open } from './open.ts';
import { replay } from './replay.ts';
import { seal } from './seal.ts';
import { small } from './small.ts';
import { stream } from './stream.ts';
import type { Workload } from './workload.ts';

/** A workload of `h5log bench`. */
export interface ShippedWorkload extends Workload {
  /** Id of the main figure, in seconds, which is compared with another program's. */
  readonly headline: string;
}

/** All workloads except e3sm, which runs on several ranks and takes input files. */
export const workloads: readonly ShippedWorkload[] = [
  { ...small, headline: 'small/shuffled/write' },
  { ...stream, headline: 'stream/async-lent' },
  { ...flushes, headline: 'flushes/total' },
  { ...open, headline: 'open/first' },
  { ...replay, headline: 'replay/small' },
  { ...seal, headline: 'seal/tiles' },
  { ...layouts, headline: 'layouts/many/1/dataset/open-first' },
];
