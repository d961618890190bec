import * as CONFIG from '../format/config-bits.ts';
import type { LogCounts } from '../format/log-group.ts';
import type { Log } from '../log.ts';
import { clipReturned } from '../post/resize.ts';
import { Stage } from '../post/stage.ts';
import { blockBytes } from '../read/index.ts';
import type { LogStore } from '../store.ts';
import { FlushBuilder, type IndexPart } from './data.ts';
import { type Placed, placeAlone, type Share } from './share.ts';
import { type Addition, nextOffset, planStore, type StorePlan, storeDone, storeFailed } from './store-plan.ts';

/** A flush whose bytes and places are fixed. */
export interface FlushPlan {
  readonly sequence: number;
  readonly time: number;
  /** Of all ranks. */
  readonly requests: number;
  readonly stages: readonly Stage[];
  readonly share: Share;
  /** Whether the ranks of this one's store have data. */
  readonly hasData: boolean;
  /** The commit of that store, on the rank that writes its structure. */
  readonly store: StorePlan | null;
  /** That of the main file if the data is in subfiles, on the rank that writes it. */
  readonly main: StorePlan | null;
  /** Why this rank could not plan its commit: the others have to be told. */
  readonly failure: { readonly error: unknown } | null;
  /** Nobody else writes: the indexes can be kept complete without a look into the tables, with these. */
  readonly isAlone: boolean;
  readonly parts: readonly IndexPart[];
  /** Tables with references to deleted datasets were to be written anew. */
  readonly rewrote: boolean;
}

export type StorePlans = Pick<FlushPlan, 'store' | 'main'>;

/** What waits for a flush. */
export interface Waiting {
  readonly stages: readonly Stage[];
  readonly requests: number;
  /** The structure has changed. */
  readonly isDirty: boolean;
}

export function waitingIn(log: Log): Waiting {
  const stages = [...log.waiting, log.current].filter((stage) => !stage.isEmpty);
  const requests = stages.reduce((sum, stage) => sum + stage.requests, 0);
  return { stages, requests, isDirty: log.main.committer?.pending ?? false };
}

/** Everything that waits becomes one append: data, table, commit record, structure. Undefined: there is nothing to commit. */
export function planAlone(log: Log, sequence: number, time: number): FlushPlan | undefined {
  const { stages, requests, isDirty } = waitingIn(log);
  if (requests === 0 && !isDirty) return undefined;
  const builder = new FlushBuilder(log, nextOffset(log.own));
  builder.addAll(stages);
  const placed = placeAlone(log.own, builder);
  const plans = planStores(log, placed);
  const isAlone = log.stores.length === 1;
  const parts = isAlone ? builder.parts : [];
  const { share, dataSize } = placed;
  const begun = beginFlush(log, stages);
  return { sequence, time, requests, share, hasData: dataSize > 0, ...plans, failure: null, isAlone, parts, ...begun };
}

/** The posts are on their way. */
export function beginFlush(log: Log, stages: readonly Stage[]): Pick<FlushPlan, 'stages' | 'rewrote'> {
  const rewrote = log.rewrite;
  log.rewrite = false;
  log.underWay.push(...stages);
  log.waiting = [];
  if (!log.current.isEmpty) log.current = new Stage();
  return { stages, rewrote };
}

/** The commits that this rank writes. */
export function planStores(log: Log, placed: Placed): StorePlans {
  const { main, spread } = log;
  if (spread) return spread.plan(log, placed);
  const store = main.committer && planStore(main, main.committer, additionTo(log, main, placed, log.rewrite));
  return { store, main: null };
}

/** What the ranks add to a store. */
export function additionTo(log: Log, store: LogStore, placed: Placed, rewrite: boolean): Addition {
  const { dataSize, data, table, tableSize, isWhole, parts } = placed;
  return {
    dataSize,
    data,
    table: isWhole ? table : null,
    tableSize,
    header: isWhole ? null : table,
    parts,
    rewrite,
    options: log.options.table,
    shapeOf: (id) => log.shapeOf(id),
    counts: { ...store.counts, datasets: log.datasets, config: configOf(log, store.counts) },
  };
}

export function configOf(log: Log, { config }: LogCounts): number {
  const { table } = log.options;
  // What is in the file already stays; the original looks for references only where the bit for them is set. That a file was
  // written by passing everything through says nothing about its bytes, but keeps the original from reading it.
  return (
    (config & ~CONFIG.passthru) |
    (table.encode ? CONFIG.encode : 0) |
    (table.share ? CONFIG.share : 0) |
    (table.compressFrom < Infinity ? CONFIG.zip : 0)
  );
}

/** The flush is in the file: its blocks can be found, its memory can be used again. */
export function flushDone(log: Log, plan: FlushPlan, overtaken: boolean): void {
  if (plan.store) storeDone(plan.store);
  if (plan.main) storeDone(plan.main);
  log.spread?.done(log, plan);
  for (const { dataset, blocks, offset, stored } of plan.parts) {
    const { index } = dataset;
    if (!index) continue;
    const { rank, from, to } = blocks;
    index.reserve(to - from);
    index.starts.set(blocks.starts.subarray(from * rank, to * rank), index.length * rank);
    index.counts.set(blocks.counts.subarray(from * rank, to * rank), index.length * rank);
    let at = offset;
    for (let i = from; i < to; i++) {
      index.add(at, stored);
      at += blockBytes(blocks.counts, i * rank, rank, dataset.elements.size);
    }
  }
  for (const dataset of log.resized) dataset.lowest = null;
  log.resized.clear();
  const complete = new Set(plan.parts.map(({ dataset }) => dataset));
  log.committed(plan.isAlone);
  for (const stage of plan.stages) {
    log.underWay.splice(log.underWay.indexOf(stage), 1);
    // An index that a read made while the flush was on its way knows nothing of it.
    if (plan.isAlone) for (const { dataset } of stage.datasets) if (!complete.has(dataset)) dataset.index = null;
    log.release(stage, !overtaken);
  }
}

/** The flush is not in the file: its posts wait again, before everything that was posted since. */
export function flushFailed(log: Log, plan: FlushPlan): void {
  if (plan.main) storeFailed(plan.main);
  if (plan.store) storeFailed(plan.store);
  log.rewrite ||= plan.rewrote;
  for (const stage of plan.stages) {
    log.underWay.splice(log.underWay.indexOf(stage), 1);
    clipReturned(stage);
  }
  log.waiting = [...plan.stages, ...log.waiting];
}
