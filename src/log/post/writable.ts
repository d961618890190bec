import { H5LogError } from '../../base/errors.ts';
import { containsReference } from '../../dtype/describe.ts';
import { hasPlainReferences, PENDING } from '../../dtype/heap-ids.ts';
import { problemOfEncoding } from '../../filter/pipeline.ts';
import type { ObjectNode } from '../../hdf5/graph/object-node.ts';
import type { ChunkTree } from '../../hdf5/layouts/chunks/chunk-tree.ts';
import * as MESSAGE from '../../hdf5/messages/message-types.ts';
import { MOST_REWRITTEN } from '../../hdf5/prepare-writing.ts';
import type { Structure } from '../../hdf5/write/structure.ts';
import type { OrdinaryDataset } from '../read/ordinary.ts';
import { PostedDataset } from './dataset.ts';
import { Posts } from './posts.ts';
import { clipStage } from './resize.ts';
import type { DatasetStage } from './stage.ts';

/** The most bytes of data in other files that are copied into this one when they change. */
const MOST_COPIED_IN = 64 * 2 ** 20;

/** An ordinary dataset that can be changed: posts wait until a flush puts them into its layout. */
export class WritableDataset extends PostedDataset {
  /** As the last commit left it. */
  committed: OrdinaryDataset;
  /** The index of its chunks at the last commit; null before the first change, or without chunks. */
  tree: ChunkTree | null = null;
  readonly structure: Structure;
  readonly #open: () => OrdinaryDataset;

  /** `open` gives the dataset as its header describes it. */
  constructor(posts: OrdinaryPosts, structure: Structure, open: () => OrdinaryDataset) {
    const committed = open();
    const { node, path, parts } = committed;
    const { space, dtype } = parts;
    const maxShape = space.kind === 'simple' ? space.maxShape : [];
    super(posts, node, path, { dtype, shape: committed.shape, maxShape, fill: committed.fill });
    this.structure = structure;
    this.committed = committed;
    this.#open = open;
  }

  /** A commit has put posts into the layout. */
  wasCommitted(tree: ChunkTree | null, targets: ReadonlySet<ObjectNode> | null): void {
    this.committed = this.#open();
    this.tree = tree;
    tree?.committed(this.structure.loader.file);
    if (targets) this.structure.holders.set(this.node, new Set(targets));
  }

  /** The address of the object that a reference stands for, in posts as well. */
  addressOf(reference: number): number {
    if (reference < PENDING) return reference;
    return (this.posts as OrdinaryPosts).referred[reference - PENDING]?.address ?? 0;
  }

  /** Whether elements refer to objects. */
  get refers(): boolean {
    return containsReference(this.elements.dtype);
  }

  override get headerAt(): number {
    return this.committed.headerAt;
  }

  /** Throws if the dataset cannot take posts, before any is taken. */
  mustTakePosts(): void {
    const { path, node, committed } = this;
    this.structure.checkMutable(node);
    const { filters, space } = committed.parts;
    const refuse = (why: string): H5LogError => new H5LogError('UNSUPPORTED', `${path}: ${why}`, { object: path });
    if (space.kind === 'null') throw new H5LogError('SHAPE', `${path} has no elements: its dataspace is NULL`);
    const bytes = committed.elements.size * committed.shape.reduce((product, size) => product * size, 1);
    if (node.message(MESSAGE.externalFiles) && bytes > MOST_COPIED_IN)
      throw refuse(`its ${bytes} bytes are in other files; up to ${MOST_COPIED_IN} can be copied in to change them`);
    if (this.refers && (!hasPlainReferences(this.elements.dtype) || bytes > MOST_REWRITTEN))
      throw refuse('only object references, in up to 64 MiB of data, can be written anew when objects move');
    if (this.elements.points && (this.posts as OrdinaryPosts).besideLog)
      throw refuse('values of variable length in ordinary datasets of a log cannot be written');
    const problem = problemOfEncoding(filters, this.posts.options.codecs);
    if (problem) throw refuse(problem);
  }

  override mustResize(): void {
    this.mustTakePosts();
    const space = this.node.message(MESSAGE.dataspace);
    if (space) this.structure.refuseInSharedTable(space);
  }

  /** Changes the shape. What is cut off is gone: it is fill when the dataset grows again. */
  resize(shape: readonly number[]): void {
    const old = this.shape;
    if (shape.every((size, d) => size === old[d])) return;
    this.mustResize();
    const stage = this.stage();
    this.structure.markDirty(this.node);
    if (shape.some((size, d) => size < (old[d] as number))) {
      const kept = clipStage(stage, shape);
      kept.extent = shape.map((size, d) => Math.min(size, old[d] as number, stage.extent?.[d] ?? size));
    }
    this.shape = shape;
  }
}

/** What was posted to the ordinary datasets of a file. */
export class OrdinaryPosts extends Posts<WritableDataset> {
  /** Whether the file has a log as well, and its commits are planned at once. */
  besideLog = false;
  readonly #datasets = new Map<ObjectNode, WritableDataset>();
  /** Objects that posts refer to; a reference that waits for a commit is PENDING plus the place in this list. */
  readonly referred: ObjectNode[] = [];
  /** Finds the object at a path. */
  find: (path: string) => ObjectNode | undefined = () => undefined;
  /** Opens a dataset that nobody has asked for, because it refers to objects that move. */
  open: (node: ObjectNode) => WritableDataset | undefined = () => undefined;

  override mustHoldData(): void {}

  override reference(path: string): number {
    const node = this.find(path);
    if (!node) throw new H5LogError('NOT_FOUND', `a reference to ${path}, which does not exist`, { object: path });
    const known = this.referred.indexOf(node);
    return PENDING + (known < 0 ? this.referred.push(node) - 1 : known);
  }

  override openStage(dataset: WritableDataset): DatasetStage<WritableDataset> {
    dataset.mustTakePosts();
    return super.openStage(dataset);
  }

  /** The dataset at a node, if it was added. */
  dataset(node: ObjectNode): WritableDataset | undefined {
    return this.#datasets.get(node);
  }

  add(dataset: WritableDataset): WritableDataset {
    this.#datasets.set(dataset.node, dataset);
    return dataset;
  }
}
