import type { Io } from '../../storage/io.ts';
import type { Log } from '../log.ts';
import type { WriteOrder } from '../read/write-order.ts';
import type { LogStore } from '../store.ts';
import type { FlushPlan, StorePlans } from './plan.ts';
import type { Placed } from './share.ts';

/** What is different for a log that is spread over several files. */
export interface Spread {
  /** When the bytes of the files were written; null: their offsets tell. */
  order(stores: readonly LogStore[]): WriteOrder | null;
  plan(log: Log, placed: Placed): StorePlans;
  /** Of one rank: makes the file follow its subfile; gives the bytes that were added to it. */
  conclude(log: Log, plan: FlushPlan): Io<number>;
  /** The flush is in the files. */
  done(log: Log, plan: FlushPlan): void;
}
