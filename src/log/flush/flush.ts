import type { Communicator } from '../../comm/communicator.ts';
import type { Io } from '../../storage/io.ts';
import type { SubfileState } from '../format/commit-record.ts';
import type { Log } from '../log.ts';
import { joinPosts } from '../post/join.ts';
import { clipReturned } from '../post/resize.ts';
import { Stage } from '../post/stage.ts';
import type { LogStore } from '../store.ts';
import { Contribution } from './contribution.ts';
import { layOutRanks, type Pending, type RankOptions, type Together, writeRanks } from './ranks.ts';
import { type Addition, commitDone, commitFailed, nextOffset, planStore, type StoreCommit } from './store-commit.ts';
import { type FlushPlan, type RankLayout, statesAfter, writeAlone } from './write.ts';

/*
 * A flush, top to bottom: everything that was posted is laid out as one append (data, table, commit record, structure), the
 * append is written, and the superblock makes it count. Planning fixes every byte, so that posting can go on and a blocking
 * call can write the same flush again.
 */

/** Plans the flush of everything that is pending; undefined if there is nothing to commit. Collective if `comm` has several ranks. */
export function planFlush(
  log: Log,
  comm: Communicator,
  sequence: number,
  now: number,
  together?: Together,
): FlushPlan | undefined {
  log.writeShapes();
  const stages = [...log.returned, log.current].filter((stage) => !stage.isEmpty);
  const pending = {
    requests: stages.reduce((sum, stage) => sum + stage.requests, 0),
    isDirty: log.main.committer?.pending ?? false,
    time: now,
  };
  if (!import.meta.page && comm.size > 1) {
    if (!together) throw new TypeError('several ranks flush together');
    const laidOut = layOutRanks(log, comm, stages, pending, together);
    if (!laidOut) return undefined;
    const { contribution, layout } = laidOut;
    // Only when all have written their data, the first rank of each store plans its commit.
    return flushPlan(log, sequence, laidOut.pending, stages, contribution, layout, NO_COMMITS, layout, false);
  }
  if (pending.requests === 0 && !pending.isDirty) return undefined;
  if (!import.meta.page && log.options.table.merge) joinPosts(stages);
  const contribution = new Contribution(log, nextOffset(log.own));
  contribution.addAlone(stages);
  const addition = contribution.asAddition();
  const commits = planCommits(log, addition);
  const isSingleWriter = log.stores.length === 1;
  return flushPlan(log, sequence, pending, stages, contribution, addition, commits, null, isSingleWriter);
}

const NO_COMMITS: PlannedCommits = { store: null, main: null };

/** Takes the stages and puts the plan together. Field by field: in a flush of 1 KiB, spreading five objects would show. */
function flushPlan(
  log: Log,
  sequence: number,
  { requests, time }: Pending,
  stages: readonly Stage[],
  contribution: Contribution,
  { dataSize }: { readonly dataSize: number },
  { store, main }: PlannedCommits,
  layout: RankLayout | null,
  isSingleWriter: boolean,
): FlushPlan {
  const rewrote = takeStages(log, stages);
  log.exchange(0, contribution.filtered.size);
  const hasData = dataSize > 0;
  return { sequence, time, requests, stages, contribution, hasData, store, main, layout, isSingleWriter, rewrote };
}

interface PlannedCommits {
  readonly store: StoreCommit | null;
  readonly main: StoreCommit | null;
}

/** The commits that this rank writes: of the store that takes its data and, with subfiles, of the main file. */
function planCommits(log: Log, addition: Addition): PlannedCommits {
  const { main, own } = log;
  if (!import.meta.page && log.hasSubfiles) {
    // The original cannot read subfiles, so references to entries of deleted datasets may stay in their tables.
    const store = addition.dataSize > 0 && own.committer ? planStore(log, own, addition, false) : null;
    try {
      const bare = { dataSize: 0, data: [], table: null, tableSize: 0, header: null, parts: log.stores.length };
      return { store, main: main.committer && planStore(log, main, bare, false) };
    } catch (error) {
      if (store) commitFailed(store, true);
      throw error;
    }
  }
  return { store: main.committer && planStore(log, main, addition, log.rewrite), main: null };
}

/** Takes the stages out of what is pending; from here on posts go into a new stage. Returns whether the flush rewrites tables. */
export function takeStages(log: Log, stages: readonly Stage[]): boolean {
  const rewrote = log.rewrite;
  log.rewrite = false;
  log.flushing.push(...stages);
  log.returned = [];
  if (!log.current.isEmpty) log.current = new Stage();
  return rewrote;
}

/** What a flush came to: the same on every rank. */
export interface Flushed {
  readonly time: number;
  /** Bytes added, in all files together. */
  readonly bytes: number;
  /** The states of the subfiles that count now. */
  readonly states: readonly SubfileState[];
}

/**
 * Writes a planned flush, and gives what it came to if several ranks found that out together. On one rank it may be started again from the
 * beginning; on several it is collective.
 */
export function writeFlush(
  log: Log,
  comm: Communicator,
  plan: FlushPlan,
  options: RankOptions,
): Io<Flushed> | Io<void> {
  return !import.meta.page && comm.size > 1 ? writeRanks(log, comm, plan, options) : writeAlone(log, plan);
}

/** What a flush of one rank comes to. */
export function flushedAlone(log: Log, plan: FlushPlan): Flushed {
  const { time, store, main } = plan;
  return { time, bytes: (store?.planned.bytes ?? 0) + (main?.planned.bytes ?? 0), states: statesAfter(log, plan) };
}

/** The flush is in the file: reads find its blocks, and its memory can be used again. */
export function flushDone(log: Log, plan: FlushPlan, { states }: Flushed, overtaken: boolean): void {
  log.written.bytes += plan.contribution.size;
  log.written.blocks += plan.contribution.blocks;
  if (plan.store) commitDone(plan.store);
  if (plan.main) commitDone(plan.main);
  log.states = states;
  const indexed = plan.isSingleWriter ? plan.contribution.indexed : [];
  // With a single writer these blocks extend the index in memory, so that no table has to be read again.
  for (const { dataset, blocks, offset, stored } of indexed) {
    dataset.index?.addRun(blocks, offset, stored, dataset.elements.size);
  }
  log.forgetResizes();
  const complete = new Set(indexed.map(({ dataset }) => dataset));
  log.committed(plan.isSingleWriter);
  releaseFiltered(log, plan, !overtaken);
  for (const stage of plan.stages) {
    log.flushing.splice(log.flushing.indexOf(stage), 1);
    // An index that a read built while the flush was being written does not have its blocks.
    if (plan.isSingleWriter) for (const { dataset } of stage.datasets) if (!complete.has(dataset)) dataset.index = null;
    log.release(stage, !overtaken);
  }
}

/** What filters made of the posts counts as held until now. */
function releaseFiltered(log: Log, { contribution }: FlushPlan, reuse: boolean): void {
  const { filtered } = contribution;
  log.exchange(filtered.size, 0);
  filtered.release(reuse);
}

/** The flush is not in the file: its posts are pending again, before everything that was posted since. `reuse`: see `Committer.undo`. */
export function flushFailed(log: Log, plan: FlushPlan, reuse: boolean): void {
  if (plan.main) commitFailed(plan.main, reuse);
  if (plan.store) commitFailed(plan.store, reuse);
  else if (plan.layout && !reuse) skipData(log.own, plan.layout);
  log.rewrite ||= plan.rewrote;
  releaseFiltered(log, plan, false);
  for (const stage of plan.stages) {
    log.flushing.splice(log.flushing.indexOf(stage), 1);
    clipReturned(stage);
  }
  log.returned = [...plan.stages, ...log.returned];
}

/** Data that ranks have written, and whose sync may have failed, is not written again to the same place. */
function skipData({ committer }: LogStore, { start, dataSize, tableSize }: RankLayout): void {
  if (committer) committer.appender.position = start - committer.appender.base + dataSize + tableSize;
}
