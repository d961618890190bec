// The flush of posts to ordinary datasets: they become chunks at the end of the file, and the headers and indexes that find them.

import type { checksummer } from '#platform';
import { PENDING } from '../../dtype/heap-ids.ts';
import { PlacedHeap } from '../../hdf5/format/pending-heap.ts';
import type { Committer, PlannedCommit } from '../../hdf5/write/commit.ts';
import { changeData } from '../../hdf5/write/rewrite.ts';
import type { Structure } from '../../hdf5/write/structure.ts';
import type { Io } from '../../storage/io.ts';
import { joinPosts } from '../post/join.ts';
import { Stage } from '../post/stage.ts';
import type { OrdinaryPosts, WritableDataset } from '../post/writable.ts';
import type { DatasetChange } from '../publish/posted-blocks.ts';
import { movedHolders, type ObjectOf, objectFinder } from '../publish/references.ts';
import { type Sink, type UpdatedLayout, updateLayout } from '../publish/update.ts';

/** Bytes that are written at a time. */
const WRITE_SIZE = 4 * 2 ** 20;

/** The posts of one flush, with the shapes that their datasets had when it was asked for. */
export interface TakenPosts {
  readonly stages: readonly Stage<WritableDataset>[];
  readonly changes: readonly DatasetChange[];
  readonly requests: number;
}

/** Takes what is pending; posts from now on belong to the next flush. null: nothing is. */
export function takePosts(posts: OrdinaryPosts): TakenPosts | null {
  const stages = [...posts.returned, posts.current].filter((stage) => !stage.isUntouched);
  if (stages.length === 0) return null;
  if (!import.meta.page) joinPosts(stages);
  const datasets = new Set(stages.flatMap((stage) => [...stage.datasets].map(({ dataset }) => dataset)));
  const changes = [...datasets]
    .filter(({ deleted }) => !deleted)
    .map((dataset) => ({
      dataset,
      shape: dataset.shape,
      stages: stages.flatMap((stage) => stage.of(dataset) ?? []),
    }));
  posts.flushing.push(...stages);
  posts.returned = [];
  posts.current = new Stage();
  return { stages, changes, requests: stages.reduce((sum, stage) => sum + stage.requests, 0) };
}

/** The layouts with the posts in them, not yet in the headers of their datasets. */
export type UpdatedLayouts = readonly (UpdatedLayout & { readonly change: DatasetChange })[];

/** `objectOf` finds the objects that references in data stand for. */
export function* updateLayouts({ stages, changes }: TakenPosts, to: EndOfFile, objectOf: ObjectOf): Io<UpdatedLayouts> {
  const heaps = stages.flatMap(({ heap }) => heap ?? []);
  const room = heaps.length > 0 ? to.reserve(heaps.reduce((sum, { size }) => sum + size, 0)) : null;
  const heap = room && new PlacedHeap(heaps, room.address, { reference: (number) => number });
  const updated: (UpdatedLayout & { change: DatasetChange })[] = [];
  for (const change of changes) updated.push({ ...(yield* updateLayout(change, { to, heap, objectOf })), change });
  // Contents are final when all elements that lead to them have their ids.
  if (room && heap) yield* room.fill(heap.images);
  return updated;
}

/** Puts the layouts into the headers; the returned function takes them out again. */
export function applyLayouts(structure: Structure, updated: UpdatedLayouts): () => void {
  const undo = updated
    .filter(({ change }) => !change.dataset.deleted)
    .map(({ change: { dataset, shape }, layout }) => {
      const { space } = dataset.committed.parts;
      return changeData(structure, dataset.node, {
        space: space.kind === 'simple' ? { ...space, shape } : space,
        layout,
      });
    });
  return () => {
    for (const each of undo.reverse()) each();
  };
}

/** The posts are in the file: reads find them there, and their memory can be used again. */
export function postsDone(
  posts: OrdinaryPosts,
  stages: readonly Stage<WritableDataset>[],
  updated: UpdatedLayouts,
  overtaken: boolean,
): void {
  for (const { change, layout, tree, targets } of updated)
    if (!change.dataset.deleted) change.dataset.wasCommitted(layout ? tree : change.dataset.tree, targets);
  for (const stage of stages) {
    posts.flushing.splice(posts.flushing.indexOf(stage), 1);
    posts.release(stage, !overtaken);
  }
}

/** The posts are not in the file: they are pending again, before everything that was posted since. */
export function postsReturned(posts: OrdinaryPosts, { stages }: TakenPosts): void {
  for (const stage of stages) posts.flushing.splice(posts.flushing.indexOf(stage), 1);
  posts.returned = [...stages, ...posts.returned];
}

/** A commit of an ordinary file whose bytes and addresses are fixed. */
export interface PlannedFlush {
  readonly updated: UpdatedLayouts;
  readonly planned: PlannedCommit;
  /** Address of the first byte of data. */
  readonly at: number;
  readonly undo: () => void;
}

/**
 * Writes the data behind the end of the file and plans the commit that makes it count. Nothing else has changed until it returns: it may
 * be begun again, and writes the same bytes to the same places. `onPlan` is called before the structure changes.
 */
export function* planOrdinary(
  committer: Committer,
  posts: OrdinaryPosts,
  taken: TakenPosts | null,
  onPlan: () => void,
): Io<PlannedFlush> {
  const { structure, appender } = committer;
  const at = appender.position;
  const end = new EndOfFile(committer, at, null);
  const all = withHolders(structure, posts, taken);
  // Before anything is written behind the end of the file.
  if (all) yield* appender.check();
  const updated = all ? yield* updateLayouts(all, end, referredObjects(structure, posts)) : [];
  yield* end.finish();
  onPlan();
  return structure.withoutNotice(() => {
    const undo = applyLayouts(structure, updated);
    appender.position = end.position;
    return { updated, planned: committer.plan(), at, undo };
  });
}

/** The posts, and datasets that change because they refer to objects that move. */
function withHolders(structure: Structure, posts: OrdinaryPosts, taken: TakenPosts | null): TakenPosts | null {
  const changes = taken?.changes ?? [];
  const holders = movedHolders(
    structure,
    changes.map(({ dataset }) => dataset.node),
  );
  if (holders.length === 0) return taken;
  const more = holders.flatMap((node) => posts.open(node) ?? []);
  const also = more.map((dataset) => ({ dataset, stages: [], shape: dataset.committed.shape }));
  return { stages: [], requests: 0, ...taken, changes: [...changes, ...also] };
}

function referredObjects(structure: Structure, posts: OrdinaryPosts): ObjectOf {
  let known: ObjectOf | null = null;
  return (reference) => {
    if (reference >= PENDING) return posts.referred[reference - PENDING];
    known ??= objectFinder(structure);
    return known(reference);
  };
}

/** The commit is not, and will not be, in the file. `reuse`: no write of it is under way any more. */
export function undoOrdinary(committer: Committer, { planned, at, undo }: PlannedFlush, reuse: boolean): void {
  committer.structure.withoutNotice(undo);
  committer.undo(planned, reuse);
  if (reuse) committer.appender.retreat({ ...planned.append, at, end: planned.append.at });
}

type Checksummer = ReturnType<typeof checksummer>;

/** Bytes that were written one after the other: their end in the file, and their checksum if one was wanted. */
interface WrittenPart {
  readonly end: number;
  readonly checksum: Uint8Array | null;
}

/** Takes data at the end of the file, a few MiB at a time. */
export class EndOfFile implements Sink {
  readonly #committer: Committer;
  position: number;
  #parts: Uint8Array[] = [];
  #waiting = 0;
  /** The file has at least this size. */
  #reserved = 0;
  readonly #begin: (() => Checksummer) | null;
  #sum: Checksummer | null = null;
  #room: WrittenPart | null = null;
  #hasData = false;

  /** Begins at an address. `begin` makes checksums, if they are wanted. */
  constructor(committer: Committer, position: number, begin: (() => Checksummer) | null) {
    this.#committer = committer;
    this.position = position;
    this.#begin = begin;
  }

  *append(bytes: Uint8Array): Io<number> {
    const address = this.position;
    this.position += bytes.length;
    this.#waiting += bytes.length;
    this.#hasData ||= bytes.length > 0;
    this.#parts.push(bytes);
    if (this.#begin) {
      this.#sum ??= this.#begin();
      this.#sum.update(bytes);
    }
    if (this.#waiting >= WRITE_SIZE) yield* this.finish();
    return address;
  }

  /** Keeps room, and fills it once the bytes are known. */
  reserve(size: number): { readonly address: number; fill(parts: readonly Uint8Array[]): Io<void> } {
    const address = this.position;
    if (this.#hasData || this.#room) throw new TypeError('room behind other data');
    this.position += size;
    const { appender } = this.#committer;
    const end = appender.base + this.position;
    this.#room = { end, checksum: null };
    const fill = function* (this: EndOfFile, parts: readonly Uint8Array[]): Io<void> {
      yield* this.finish();
      yield* appender.reserve(this.position);
      const sum = this.#begin?.();
      for (const part of parts) sum?.update(part);
      this.#room = { end, checksum: sum?.digest() ?? null };
      yield { op: 'write', parts, offset: appender.base + address };
    };
    return { address, fill: fill.bind(this) };
  }

  /** Writes what is left. */
  *finish(): Io<void> {
    if (this.#waiting === 0) return;
    const { appender } = this.#committer;
    if (this.position > this.#reserved) {
      this.#reserved = this.position + WRITE_SIZE;
      yield* appender.reserve(this.#reserved);
    }
    const offset = appender.base + this.position - this.#waiting;
    const parts = this.#parts;
    this.#parts = [];
    this.#waiting = 0;
    yield { op: 'write', parts, offset };
  }

  /** What was written, once all of it is. */
  get parts(): WrittenPart[] {
    const end = this.#committer.appender.base + this.position;
    const parts = this.#room ? [this.#room] : [];
    if (this.#hasData) parts.push({ end, checksum: this.#sum?.digest() ?? null });
    return parts;
  }
}
