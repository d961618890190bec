import type { Io } from '../../storage/io.ts';
import { type SubfileState, statePart } from '../format/commit-record.ts';
import type { Log } from '../log.ts';
import { WriteOrder } from '../read/write-order.ts';
import type { LogStore } from '../store.ts';
import { additionTo, configOf, type FlushPlan, type StorePlans } from './plan.ts';
import type { Placed } from './share.ts';
import type { Spread } from './spread.ts';
import { type Addition, planStore, stateOf, storeFailed } from './store-plan.ts';
import { writeRest } from './write.ts';

/** Data and tables are in subfiles; the file itself has the commit records, which say which state of each of them counts. */
export const inSubfiles: Spread = {
  order(stores: readonly LogStore[]): WriteOrder | null {
    return stores.length > 1 ? new WriteOrder(stores.map((store) => store.historyLater())) : null;
  },

  plan(log: Log, placed: Placed): StorePlans {
    const { own, main } = log;
    const writer = placed.dataSize > 0 ? own.committer : null;
    // The original cannot read subfiles, so references to entries of deleted datasets may stay in them.
    const store = writer && planStore(own, writer, additionTo(log, own, placed, false));
    try {
      return { store, main: main.committer && planStore(main, main.committer, bareAddition(log)) };
    } catch (error) {
      if (store) storeFailed(store);
      throw error;
    }
  },

  *conclude(log: Log, plan: FlushPlan): Io<number> {
    const { main } = plan;
    if (!main) return 0;
    yield* writeRest(log, plan, main, statesAfter(log, plan).map(statePart));
    return main.planned.bytes;
  },

  done(log: Log, plan: FlushPlan): void {
    log.states = statesAfter(log, plan);
  },
};

/** The states of the subfiles, with what this rank writes. */
function statesAfter(log: Log, { store }: FlushPlan): readonly SubfileState[] {
  const states = [...log.states];
  if (store) states[store.store.place] = stateOf(store);
  return states;
}

/** What the file itself adds. */
function bareAddition(log: Log): Addition {
  return {
    dataSize: 0,
    data: [],
    table: null,
    tableSize: 0,
    header: null,
    parts: log.stores.length,
    rewrite: false,
    options: log.options.table,
    shapeOf: () => undefined,
    counts: { ...log.main.counts, datasets: log.datasets, config: configOf(log, log.main.counts) },
  };
}
