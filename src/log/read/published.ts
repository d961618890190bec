import { formatError, type H5LogError } from '../../base/errors.ts';
import { UNDEFINED } from '../../hdf5/format/cursor.ts';
import type { ChunkTree } from '../../hdf5/layouts/chunks/chunk-tree.ts';
import { clip } from '../../space/box.ts';
import { copyBox, fillWith } from '../../space/copy.ts';
import type { Blocks } from '../../space/select.ts';
import { sizeOf } from '../../space/shape.ts';
import type { Io } from '../../storage/io.ts';
import type { View } from '../format/view.ts';
import type { Coverage } from './index.ts';
import type { OrdinaryDataset } from './ordinary.ts';

/** The ordinary layout of a dataset of the log, as a commit left it: reads take from it what no newer block has. */
export class Published {
  readonly view: View;
  /** What the layout has of the log. */
  readonly floor: Coverage;
  /** The index of its chunks, once it was needed for a change. */
  readonly tree: ChunkTree | null;
  readonly #open: () => OrdinaryDataset;
  #data: OrdinaryDataset | null = null;

  /** `open` gives the dataset as its header describes it. */
  constructor(view: View, open: () => OrdinaryDataset, tree: ChunkTree | null = null) {
    this.view = view;
    this.floor = { ends: [view.end] };
    this.tree = tree;
    this.#open = open;
  }

  /** The layout. Whoever is about to change the header must have asked for it before. */
  get data(): OrdinaryDataset {
    this.#data ??= this.#open();
    return this.#data;
  }

  /** This layout after the dataset became smaller: what lies outside of `cut` is not seen any more. */
  cutTo(cut: readonly number[]): Published {
    const { view, data, tree } = this;
    return new Published({ ...view, cut }, () => data, tree);
  }

  /** This layout with the shape that another program has given its dataspace. */
  withShape(shape: readonly number[]): Published {
    const { view, data, tree } = this;
    return new Published({ ...view, shape }, () => data, tree);
  }

  /** Whether there is room for values in the file. */
  get isAllocated(): boolean {
    const { layout } = this.data.parts;
    if (layout?.kind === 'chunked') return layout.index.address !== UNDEFINED;
    return layout !== null && (layout.kind !== 'contiguous' || layout.address !== UNDEFINED);
  }

  /** Up to where what the layout holds counts. */
  get visible(): Float64Array {
    const { cut } = this.view;
    return Float64Array.from(this.data.shape, (size, d) => Math.min(size, cut?.[d] ?? size));
  }
}

/** Of a log that another program has moved: what values of the log point to moved with it, what those of layouts point to did not. */
export function mixedValues(): H5LogError {
  return formatError('values in a log that another program has moved, and in a layout that it has rewritten');
}

/** Reads blocks of an ordinary dataset one after the other; what lies outside of `visible` is fill. */
export function* readInside(
  dataset: OrdinaryDataset,
  blocks: Blocks,
  visible: Float64Array,
  fill: Uint8Array | null,
  packed: Uint8Array,
): Io<void> {
  const { size } = dataset.elements;
  const kept = clip(blocks, visible);
  if (kept.size === blocks.size) {
    yield* dataset.boxes(blocks).read(packed);
    return;
  }
  fillWith(packed, 0, blocks.size, size, fill);
  if (kept.size === 0) return;
  const inside = new Uint8Array(kept.size * size);
  yield* dataset.boxes({ ...kept, itemOf: null, elementOf: null }).read(inside);
  // Every part begins where its block does.
  const { rank } = kept;
  const origin = new Float64Array(rank);
  for (let i = 0, at = 0, k = 0, from = 0; i < blocks.length; i++) {
    const count = blocks.counts.subarray(i * rank, (i + 1) * rank);
    if (k < kept.length && kept.from[k] === i) {
      const part = kept.counts.subarray(k * rank, (k + 1) * rank);
      copyBox(inside, from, part, origin, packed, at, count, origin, part, size);
      from += size * sizeOf(part);
      k++;
    }
    at += size * sizeOf(count);
  }
}
