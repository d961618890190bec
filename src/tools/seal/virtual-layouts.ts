// Datasets that are sealed as virtual ones: which pieces of the log they show, and the mappings to these.

import type { ObjectNode } from '../../hdf5/graph/object-node.ts';
import { contiguous, type NewLayout, virtual } from '../../hdf5/layouts/new-dataset.ts';
import type { Mapping } from '../../hdf5/layouts/virtual.ts';
import { simpleSpace } from '../../hdf5/messages/dataspace.ts';
import { type Structure, untrackOrder } from '../../hdf5/write/structure.ts';
import type { LogDataset } from '../../log/post/dataset.ts';
import { meetsShape } from '../../log/publish/chunk-survey.ts';
import type { BlockIndex } from '../../log/read/index.ts';
import { visibleParts } from '../../log/read/visible.ts';
import { type Box, boxAt, positionIn } from '../../space/box.ts';

/** The group of the datasets that virtual ones look through; with more underscores if the name is taken. */
const PIECES = '_pieces';

/** Virtual datasets over the blocks of a log. */
export class VirtualLayouts {
  readonly #structure: Structure;
  /** File offsets count from the start of the file, addresses from here. */
  readonly #base: number;
  #group: ObjectNode | null = null;
  #name = PIECES;

  constructor(structure: Structure, base: number) {
    this.#structure = structure;
    this.#base = base;
  }

  /** A layout that looks through to pieces of the log. */
  layout(dataset: LogDataset, pieces: readonly MappedPiece[]): { layout: NewLayout; pieces: number } {
    const { size } = dataset.elements;
    // A dataset over bytes of the log begins at one piece and reaches others only in steps of an element.
    const byRest = new Map<number, MappedPiece[]>();
    for (const piece of pieces) {
      const rest = piece.offset % size;
      const list = byRest.get(rest);
      if (list) list.push(piece);
      else byRest.set(rest, [piece]);
    }
    const mappings: Mapping[] = [];
    for (const list of byRest.values()) {
      const first = list.reduce((least, { offset }) => Math.min(least, offset), Infinity);
      const end = list.reduce((most, piece) => Math.max(most, endOf(piece, size)), 0);
      const source = this.#alias(dataset, first, (end - first) / size);
      for (const { start, count, offset, runs } of list) {
        const repeated = runs.times > 1 ? { repeated: { times: [runs.times], stride: [runs.stride] } } : {};
        const slab = { start: [(offset - first) / size], count: [runs.run], ...repeated };
        mappings.push({ file: '.', dataset: source, source: slab, target: { start, count } });
      }
    }
    return { layout: virtual(mappings), pieces: mappings.length };
  }

  /** A dataset of the same type over bytes of the log, from a file offset on; gives its path. */
  #alias(dataset: LogDataset, offset: number, length: number): string {
    const structure = this.#structure;
    const group = this.#folder();
    const name = String(group.links.size);
    structure.createDataset(group, name, {
      dtype: dataset.elements.dtype,
      space: simpleSpace([length]),
      layout: contiguous(offset - this.#base),
      untracked: true,
    });
    return `/${this.#name}/${name}`;
  }

  #folder(): ObjectNode {
    if (this.#group) return this.#group;
    const structure = this.#structure;
    while (structure.root.links.has(this.#name)) this.#name = `_${this.#name}`;
    this.#group = structure.createGroup(structure.root, this.#name);
    untrackOrder(this.#group);
    return this.#group;
  }
}

/** The byte behind the last one of a piece. */
function endOf({ offset, runs }: MappedPiece, size: number): number {
  return offset + ((runs.times - 1) * runs.stride + runs.run) * size;
}

// ---------------------------------------------------------------- pieces

/** More pieces than this make a virtual dataset slow to open. */
const MOST_PIECES = 4096;
/** A block that more newer ones overlap is not worth cutting. */
const MOST_COVERS = 4096;
/** At most this many blocks are cut, with this many newer ones in all. */
const MOST_BLOCKS = 2 ** 18;
const MOST_WORK = 2 ** 22;

/** A visible part of one block: runs of elements from a byte of the file on. */
export interface MappedPiece {
  readonly start: readonly number[];
  readonly count: readonly number[];
  readonly offset: number;
  readonly runs: StridedRuns;
}

/**
 * The visible parts of all blocks, which a virtual dataset can map: no two of them overlap. null if there are too many of them, or
 * blocks whose bytes are not the elements themselves.
 */
export function mappedPieces(index: BlockIndex, shape: readonly number[], elementSize: number): MappedPiece[] | null {
  if (index.stored || index.length > MOST_BLOCKS) return null;
  const [origin, end] = [new Float64Array(shape.length), Float64Array.from(shape)];
  const pieces: MappedPiece[] = [];
  let work = 0;
  for (let block = index.length - 1; block >= 0; block--) {
    if (!meetsShape(index, block, shape)) continue;
    const seen = visibleParts(index, block, origin, end, Math.min(MOST_COVERS, MOST_WORK - work));
    if (!seen) return null;
    work += seen.newer;
    for (let i = 0; i < seen.parts.length; i++)
      if (!add(pieces, index, block, boxAt(seen.parts, i), elementSize)) return null;
  }
  return pieces;
}

/** Adds a part of a block; one whose elements are not evenly spread in the block is taken apart. */
function add(pieces: MappedPiece[], index: BlockIndex, block: number, box: Box, elementSize: number): boolean {
  const { rank, starts, counts, offsets } = index;
  const shape = counts.subarray(block * rank, (block + 1) * rank);
  const runs = stridedRuns(shape, box.count);
  if (!runs) {
    const d = box.count.findIndex((n) => n > 1);
    const n = box.count[d] as number;
    for (let i = 0; i < n; i++) {
      const [start, count] = [box.start.slice(), box.count.slice()];
      start[d] = (start[d] as number) + i;
      count[d] = 1;
      if (!add(pieces, index, block, { start, count }, elementSize)) return false;
    }
    return true;
  }
  if (pieces.length === MOST_PIECES) return false;
  const inBlock = box.start.map((start, d) => start - (starts[block * rank + d] as number));
  const offset = (offsets[block] as number) + positionIn(shape, inBlock) * elementSize;
  pieces.push({ start: [...box.start], count: [...box.count], offset, runs });
  return true;
}

/** `times` runs of `run` elements, one every `stride` elements. */
interface StridedRuns {
  readonly run: number;
  readonly times: number;
  readonly stride: number;
}

/** The runs of a box inside a larger one, both in row-major order; null if they do not follow one another at equal distances. */
function stridedRuns(shape: ArrayLike<number>, count: ArrayLike<number>): StridedRuns | null {
  let run = 1;
  let [times, stride] = [1, 1];
  let step = 1;
  for (let d = shape.length - 1; d >= 0; d--) {
    const n = count[d] as number;
    if (n > 1) {
      if (times === 1 && step === run) run *= n;
      else if (times === 1) [times, stride] = [n, step];
      else if (times * stride === step) times *= n;
      else return null;
    }
    step *= shape[d] as number;
  }
  return { run, times, stride: times === 1 ? run : stride };
}
