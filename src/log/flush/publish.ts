// A flush that is planned while it is written: it needs what the file holds, because it publishes, or because ordinary datasets beside
// the log change as well. Data first, then what is copied for ordinary layouts; then table, commit record and structure in one append.

import { checksummer } from '#platform';
import { H5LogError } from '../../base/errors.ts';
import { T } from '../../dtype/construct.ts';
import { containsReference } from '../../dtype/describe.ts';
import type { ObjectNode } from '../../hdf5/graph/object-node.ts';
import { SCALAR_SPACE } from '../../hdf5/messages/dataspace.ts';
import { copyAttribute, deleteAttribute, setPlainAttribute } from '../../hdf5/write/attributes.ts';
import { renameAttribute } from '../../hdf5/write/rewrite.ts';
import type { Io } from '../../storage/io.ts';
import { POINTER_VERSION, type RankPart } from '../format/commit-record.ts';
import { HIDDEN_ATTRIBUTES, isAlias, NOTE, NUMBERS, VIEW } from '../format/names.ts';
import { resizeAnchor, writeReach } from '../format/new-anchor.ts';
import { type View, writeView } from '../format/view.ts';
import type { Log } from '../log.ts';
import { linkedObjects, numbersOf } from '../pointers.ts';
import type { LogDataset } from '../post/dataset.ts';
import { joinPosts } from '../post/join.ts';
import { reachOf } from '../post/resize.ts';
import type { Stage } from '../post/stage.ts';
import type { OrdinaryPosts } from '../post/writable.ts';
import {
  type Candidate,
  copiedBy,
  type MadeLayout,
  Publisher,
  type PublishPlan,
  planPublishing,
  putLayout,
} from '../publish/publish.ts';
import { LogData } from '../read/boxes.ts';
import { BlockIndex } from '../read/index.ts';
import { Contribution } from './contribution.ts';
import { flushDone, flushFailed, takeStages } from './flush.ts';
import {
  applyLayouts,
  EndOfFile,
  postsDone,
  postsReturned,
  type TakenPosts,
  type UpdatedLayouts,
  updateLayouts,
} from './ordinary.ts';
import { type Addition, nextOffset, planStore, type StoreCommit } from './store-commit.ts';
import { type FlushPlan, NO_SUM, writeContribution, writeRest } from './write.ts';

/** The most that is copied at a close with 'auto': so many bytes, or this part of what the session wrote; and the most blocks. */
const AUTO_COPIED = 16 * 2 ** 20;
const AUTO_PART = 8;
const AUTO_BLOCKS = 65_536;
/** Tables of so many bytes have more. */
const AUTO_TABLES = 4 * 2 ** 20;
/** The most datasets that are looked at because they may differ, although the session did not touch them. */
const AUTO_DATASETS = 16_384;

/** What a commit is to publish. */
export interface PublishRequest {
  /** Only if it costs little, and then all datasets. */
  readonly auto: boolean;
  /** What came of it, once the commit is in the file. */
  outcome?: PublishOutcome;
}

interface PublishOutcome {
  /** What was published; null: it would have cost too much. */
  readonly made: readonly MadeLayout[] | null;
  readonly without: readonly NotPublished[];
}

/** Everything that belongs to a commit which will be planned later. */
export interface TakenFlush {
  readonly stages: readonly Stage[];
  readonly requests: number;
  readonly rewrote: boolean;
  /** Shapes of datasets that were posted to, or grew by appending. */
  readonly shapes: ReadonlyMap<LogDataset, readonly number[]>;
  readonly grown: ReadonlySet<LogDataset>;
  readonly ordinary: TakenPosts | null;
  /** null: not to be published. */
  readonly publish: PublishRequest | null;
  /** Datasets that differ from what others see; with `othersDiffer`, any other may as well. */
  readonly touched: ReadonlySet<LogDataset>;
  readonly othersDiffer: boolean;
}

const NO_DATASETS: ReadonlySet<LogDataset> = new Set();

/** Takes what is pending; posts from now on belong to the next flush. */
export function takeFlush(log: Log, ordinary: TakenPosts | null, publish: PublishRequest | null): TakenFlush {
  const stages = [...log.returned, log.current].filter((stage) => !stage.isEmpty);
  if (!import.meta.page && log.options.table.merge) joinPosts(stages);
  const posted = new Set([
    ...stages.flatMap((stage) => [...stage.datasets].map(({ dataset }) => dataset)),
    ...log.grown,
  ]);
  const touched = publish ? log.touched : NO_DATASETS;
  const othersDiffer = publish !== null && log.othersDiffer;
  const taken: TakenFlush = {
    stages,
    requests: stages.reduce((sum, stage) => sum + stage.requests, 0),
    rewrote: takeStages(log, stages),
    shapes: new Map([...posted, ...touched].map((dataset) => [dataset, dataset.shape])),
    grown: new Set(log.grown),
    ordinary,
    publish,
    touched,
    othersDiffer,
  };
  log.grown.clear();
  if (publish) {
    log.touched = new Set();
    log.othersDiffer = false;
  }
  return taken;
}

/** The commit is not in the file: everything in it is pending again. */
export function returnFlush(
  log: Log,
  posts: OrdinaryPosts,
  taken: TakenFlush,
  plan: LatePlan | null,
  reuse: boolean,
): void {
  plan?.undo();
  if (plan) flushFailed(log, plan.flush, reuse);
  else {
    log.rewrite ||= taken.rewrote;
    for (const stage of taken.stages) log.flushing.splice(log.flushing.indexOf(stage), 1);
    log.returned = [...taken.stages, ...log.returned];
  }
  for (const dataset of taken.grown) log.grown.add(dataset);
  if (taken.publish) touchAgain(log, taken);
  if (taken.ordinary) postsReturned(posts, taken.ordinary);
}

/** What a commit was to publish, and has not, is to be published later. */
function touchAgain(log: Log, { touched, othersDiffer }: TakenFlush): void {
  log.touched = new Set([...touched, ...log.touched]);
  log.othersDiffer ||= othersDiffer;
}

/** A dataset that others do not see as it is, and why. */
interface NotPublished {
  readonly dataset: LogDataset;
  readonly reason: string;
}

/** A flush whose bytes and offsets are fixed. */
export interface LatePlan extends PublishOutcome {
  readonly flush: FlushPlan;
  readonly commit: StoreCommit;
  readonly parts: readonly RankPart[];
  readonly updated: UpdatedLayouts;
  /** Takes the layouts out of the headers again. */
  readonly undo: () => void;
  /** The commit is in the file. */
  readonly done: () => void;
}

/**
 * Writes data and copies, and plans the commit that makes them count. Nothing else has changed until it returns: it may be begun again,
 * and writes the same bytes to the same places. `onPlan` is called before the structure changes.
 */
export function* planLate(
  log: Log,
  taken: TakenFlush,
  { sequence, time, onPlan }: { readonly sequence: number; readonly time: number; readonly onPlan: () => void },
): Io<LatePlan> {
  const { main, structure } = log;
  const { committer } = main;
  if (!committer) throw new TypeError('a flush without a writer');
  // Before anything is written behind the end of the file.
  yield* committer.appender.check();
  const { contribution, addition } = contributed(log, taken, structure);
  const sum = log.options.checksum;
  const parts: RankPart[] = [];
  const end = new EndOfFile(committer, committer.appender.position + addition.dataSize, sum ? checksummer : null);
  if (addition.dataSize > 0) {
    yield* committer.appender.reserve(committer.appender.position + addition.dataSize);
    const { data } = addition;
    const { offset, size, lent } = contribution;
    const { checksum } = yield* writeContribution(log, { data, offset, size, lent, section: null }, false);
    parts.push({ rank: 0, end: offset + size, checksum });
  }
  const updated = taken.ordinary ? yield* updateLayouts(taken.ordinary, end, () => undefined) : [];
  const plans = taken.publish && (yield* planAll(log, taken, contribution, taken.publish));
  const files = [new LogData(0, nextOffset(main) + contribution.size, null)];
  const show = plans && (yield* makeAll(log, plans, new Publisher(end, main.base, files)));
  yield* end.finish();
  for (const { end: stop, checksum } of end.parts) parts.push({ rank: 0, end: stop, checksum: checksum ?? NO_SUM });
  onPlan();
  const copied = end.position - committer.appender.position - addition.dataSize;
  return planCommit(log, taken, { contribution, addition, copied, parts, updated, show, sequence, time });
}

/** What a commit consists of, when everything but its table, its record and its structure is in the file. */
interface LateParts {
  readonly contribution: Contribution;
  readonly addition: Addition;
  /** Bytes that were copied for layouts, behind the data. */
  readonly copied: number;
  /** Of the data and of what was copied. */
  readonly parts: RankPart[];
  readonly updated: UpdatedLayouts;
  /** The layouts that the commit puts into headers; null: none. */
  readonly show: NewlyPublished | null;
  readonly sequence: number;
  readonly time: number;
}

/** Puts everything into the structure, and plans the commit. */
export function planCommit(
  log: Log,
  taken: TakenFlush,
  { contribution, addition, copied, parts, updated, show, sequence, time }: LateParts,
): LatePlan {
  const { main, structure } = log;
  // A commit has one part at least.
  if (parts.length === 0)
    parts.push({ rank: 0, end: nextOffset(main), checksum: log.options.checksum ? checksummer().digest() : NO_SUM });
  return structure.withoutNotice(() => {
    const undo: (() => void)[] = [];
    const { version } = log;
    const takeBack = (): void => {
      log.version = version;
      structure.withoutNotice(() => {
        for (const each of undo.reverse()) each();
      });
    };
    try {
      const { touched } = log;
      // These shapes belong to this commit.
      log.touched = new Set();
      for (const [dataset, shape] of taken.shapes) {
        // Where nothing can be finished at once, it may have been resized since; the next commit gets that.
        const isResized = dataset.shape.some((size, d) => size !== shape[d]);
        if (dataset.deleted || !(isResized || taken.grown.has(dataset))) continue;
        dataset.writeShape(shape);
        if (isResized) log.grown.add(dataset);
      }
      log.touched = touched;
      undo.push(applyLayouts(structure, updated));
      // Everything of this commit lies below, its table included.
      const behind = nextOffset(main) + addition.dataSize + copied + addition.tableSize;
      // Only the first time: from then on attributes get both names when they are set.
      if (show && log.published === null) addAliases(structure);
      const shown = show?.made.filter(({ dataset }) => !dataset.deleted) ?? [];
      for (const made of shown) undo.push(...showLayout(log, made, { sequence, end: behind }));
      if (show) undo.push(log.publishedAt(sequence, copied));
      else if (taken.publish) noteUnpublished(log, taken);
      if (shown.length > 0) log.version = POINTER_VERSION;
      const commit = planStore(log, main, { ...addition, data: [], copied, parts: parts.length }, taken.rewrote);
      if (show) undo.push(log.pointers.layoutsRefer(show.made, show.without.length === 0));
      log.exchange(0, contribution.filtered.size);
      const flush: FlushPlan = {
        sequence,
        time,
        requests: taken.requests,
        stages: taken.stages,
        contribution,
        hasData: addition.dataSize > 0,
        store: commit,
        main: null,
        layout: null,
        isSingleWriter: true,
        rewrote: taken.rewrote,
      };
      return {
        flush,
        commit,
        parts,
        updated,
        made: show?.made ?? null,
        without: show?.without ?? [],
        undo: takeBack,
        done: () => {
          for (const { dataset, tree } of shown) dataset.wasPublished(tree);
          if (show) {
            log.published = sequence;
            log.refused = new Map(show.without.map(({ dataset, reason }) => [dataset, reason]));
          }
          if (taken.publish) taken.publish.outcome = { made: show?.made ?? null, without: show?.without ?? [] };
        },
      };
    } catch (error) {
      takeBack();
      throw error;
    }
  });
}

/** What was posted, laid out behind the end of the file. */
function contributed(
  log: Log,
  taken: TakenFlush,
  structure: Log['structure'],
): { contribution: Contribution; addition: Addition } {
  const contribution = new Contribution(log, nextOffset(log.own));
  contribution.shapes = taken.shapes;
  contribution.collects = taken.publish !== null;
  structure.withoutNotice(() => contribution.addAlone(taken.stages));
  return { contribution, addition: contribution.asAddition() };
}

export function* writeLate(log: Log, { flush, commit, parts }: LatePlan): Io<number> {
  yield* writeRest(log, flush, commit, parts);
  return commit.planned.bytes;
}

/** The commit is in the file: reads find its blocks in the log, and what was published in the layouts. */
export function lateDone(log: Log, posts: OrdinaryPosts, taken: TakenFlush, plan: LatePlan, overtaken: boolean): void {
  flushDone(
    log,
    plan.flush,
    { time: plan.flush.time, bytes: plan.commit.planned.bytes, states: log.states },
    overtaken,
  );
  plan.done();
  // What could not be published, or was not because it would have cost too much, is to be published later.
  if (taken.publish && !plan.made) touchAgain(log, taken);
  for (const { dataset } of plan.without) log.touched.add(dataset);
  if (taken.ordinary) postsDone(posts, taken.ordinary.stages, plan.updated, overtaken);
}

// ---------------------------------------------------------------- layouts

/** What a commit publishes. */
interface NewlyPublished {
  readonly made: readonly MadeLayout[];
  readonly without: readonly NotPublished[];
}

/** How everything that differs from what others see is published. */
interface PublishPlans {
  readonly planned: readonly { readonly candidate: Candidate; readonly plan: PublishPlan }[];
  readonly without: readonly NotPublished[];
}

/** null if it would cost more than it may. */
export function* planAll(
  log: Log,
  taken: TakenFlush,
  contribution: Contribution,
  { auto }: PublishRequest,
): Io<PublishPlans | null> {
  if (auto && (yield* isTooMuch(log, contribution.blocks, taken.othersDiffer))) return null;
  const datasets = new Set(taken.othersDiffer ? (yield* log.everyDataset()).values() : taken.touched);
  // Objects that data refers to may have moved with any commit.
  if (log.structure.root.attributes.has(NUMBERS))
    for (const dataset of (yield* log.everyDataset()).values())
      if (containsReference(dataset.elements.dtype)) datasets.add(dataset);
  const planned: { candidate: Candidate; plan: PublishPlan }[] = [];
  const without: NotPublished[] = [];
  let copied = 0;
  for (const dataset of datasets) {
    if (dataset.deleted) continue;
    try {
      const candidate = yield* candidateOf(log, dataset, taken, contribution);
      const plan = planPublishing(candidate);
      copied += copiedBy(candidate, plan);
      if (plan.kind !== 'same') planned.push({ candidate, plan });
    } catch (error) {
      if (!(error instanceof H5LogError) || error.code !== 'UNSUPPORTED') throw error;
      without.push({ dataset, reason: error.message });
    }
    if (auto && (without.length > 0 || copied > Math.max(AUTO_COPIED, log.written.bytes / AUTO_PART))) return null;
  }
  return { planned, without };
}

/** Makes the layouts. Those of data with references belong to the rank that writes the structure. */
export function* makeAll(
  log: Log,
  { planned, without }: PublishPlans,
  publisher: Publisher,
  leads = true,
): Io<NewlyPublished> {
  const made: MadeLayout[] = [];
  let numbers: Map<number, ObjectNode> | null = null;
  for (const { candidate, plan } of planned) {
    if (plan.kind === 'same') continue;
    if (plan.kind !== 'references') {
      made.push(yield* publisher.make(candidate, plan));
      continue;
    }
    if (!leads) continue;
    if (!numbers) {
      // Loads all objects.
      yield* log.everyDataset();
      numbers = numbersOf(log.structure);
    }
    made.push(yield* publisher.refer(candidate, log.structure, numbers));
  }
  return { made, without };
}

/** Whether it can be told without a plan that publishing costs more than it may by itself. */
export function* isTooMuch(log: Log, blocks: number, othersDiffer: boolean): Io<boolean> {
  const { main, publishState, tables, written } = log;
  const copied = publishState?.copied ?? 0;
  // What was copied before is dead by now, or will be soon.
  if (copied > AUTO_COPIED && copied > main.end - copied) return true;
  if (written.blocks + blocks > AUTO_BLOCKS) return true;
  if (!othersDiffer) return false;
  const { items } = tables.committed;
  if (log.found > AUTO_DATASETS || items.reduce((sum, { size }) => sum + size, 0) > AUTO_TABLES) return true;
  // Where nothing was ever published, nobody has to look at the datasets to count what is not.
  if (!import.meta.page && log.published === null && blocks + (yield* tables.total()) > AUTO_BLOCKS) return true;
  let total = blocks;
  for (const dataset of (yield* log.everyDataset()).values()) {
    total += yield* tables.count(dataset, tables.committed, dataset.base?.floor);
    if (total > AUTO_BLOCKS) return true;
  }
  return false;
}

/**
 * Tells a person who looks with another program where the data is that it does not show. Only at datasets that the session touched:
 * to look for others would take longer with every one that there is.
 */
function noteUnpublished(log: Log, { touched }: TakenFlush): void {
  const { structure } = log;
  for (const dataset of touched) {
    if (dataset.deleted) continue;
    const sequence = dataset.published?.view.sequence;
    const shown = sequence === undefined ? 'none of it is shown here' : `commit ${sequence} is shown here`;
    const text = `The data is in the log of this file (_LOG), and ${shown}. To see the newest: npx h5log publish FILE`;
    const bytes = new TextEncoder().encode(`${text}\0`);
    const dtype = T.string({ length: bytes.length, pad: 'terminated', charset: 'ascii' });
    setPlainAttribute(structure, dataset.node, NOTE, dtype, SCALAR_SPACE, bytes);
  }
}

/** A dataset with the blocks that its layout does not have: committed ones, and those of this commit. */
function* candidateOf(
  log: Log,
  dataset: LogDataset,
  { shapes }: TakenFlush,
  contribution: Contribution,
): Io<Candidate> {
  const { tables } = log;
  const floor = dataset.base?.floor;
  const known = yield* tables.whole(dataset, tables.committed, floor);
  const committed = known ?? (yield* tables.index(dataset, null, tables.committed, floor));
  const own = contribution.collected.get(dataset) ?? [];
  const shape = shapes.get(dataset) ?? dataset.shape;
  if (own.length === 0) return { dataset, shape, newer: committed };
  const newer = new BlockIndex(dataset.shape.length, committed.length + own.length);
  for (let i = 0; i < committed.length; i++) newer.take(committed, i);
  for (const { blocks, offset, stored } of own) newer.addRun(blocks, offset, stored, dataset.elements.size);
  return { dataset, shape, newer };
}

/** Gives every attribute of the user whose name begins with an underscore that name for other programs, too. */
function addAliases(structure: Log['structure']): void {
  for (const node of linkedObjects(structure)) {
    for (const stored of [...node.attributes.keys()]) {
      const name = stored.slice(1);
      if (stored.startsWith('__') && isAlias(name) && !node.attributes.has(name))
        copyAttribute(structure, node, stored, name);
    }
  }
}

/** Puts a layout into the header of its dataset, with the mark that says what it shows; the returned functions take both out again. */
function showLayout(
  log: Log,
  { dataset, shape, layout, way }: MadeLayout,
  { sequence, end }: Pick<View, 'sequence' | 'end'>,
): (() => void)[] {
  const { structure } = log;
  const { node, published, id } = dataset;
  const undoLayout = putLayout(structure, node, dataset, shape, layout);
  // Another program has changed the shape: the log learns it now.
  if (dataset.hasForeignShape) {
    const reach = structure.now(reachOf(dataset));
    if (reach) writeReach(structure, node, reach);
    dataset.wasShrunk = null;
    resizeAnchor(structure, node, shape);
  }
  if (node.attributes.has(NOTE)) deleteAttribute(structure, node, NOTE);
  dataset.planned = { token: log.token(), id, sequence, end, way, shape, cut: null };
  writeView(structure, node, dataset.planned);
  // With a dataspace, a dimension scale is one for every program.
  const shown = published ? [] : HIDDEN_ATTRIBUTES.filter((name) => node.attributes.has(name));
  for (const name of shown) renameAttribute(structure, node, name, name.slice(1));
  const undoView = (): void => {
    dataset.planned = null;
    if (dataset.deleted) return;
    for (const name of shown)
      if (node.attributes.has(name.slice(1))) renameAttribute(structure, node, name.slice(1), name);
    // What was cut off since then stays gone.
    if (dataset.published) writeView(structure, node, dataset.published.view);
    else deleteAttribute(structure, node, VIEW);
  };
  return [undoLayout, undoView];
}
