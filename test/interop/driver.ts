import { encodeValues } from '../../src/dtype/encode.ts';
import type { DType } from '../../src/dtype/model.ts';
import { applyFilters } from '../../src/filter/apply.ts';
import { withoutWaiting } from '../../src/filter/pipeline.ts';
import { SUPERBLOCK_SIZE } from '../../src/hdf5/format/superblock.ts';
import { FileExtent, type ObjectNode } from '../../src/hdf5/graph/object-node.ts';
import type { ChunkEntry } from '../../src/hdf5/layouts/chunks/chunk-index.ts';
import { contiguous, type NewDataset } from '../../src/hdf5/layouts/new-dataset.ts';
import type { Dataspace } from '../../src/hdf5/messages/dataspace.ts';
import type { FilterEntry } from '../../src/hdf5/messages/filter-pipeline.ts';
import { openStructure } from '../../src/hdf5/open.ts';
import { newStructure, prepareWriting } from '../../src/hdf5/prepare-writing.ts';
import { Appender } from '../../src/hdf5/write/appender.ts';
import { deleteAttribute, setAttribute } from '../../src/hdf5/write/attributes.ts';
import { Committer } from '../../src/hdf5/write/commit.ts';
import type { Structure } from '../../src/hdf5/write/structure.ts';
import { beginLog, newToken } from '../../src/log/format/log-group-write.ts';
import { settleScales } from '../../src/log/format/scales.ts';
import { linkedObjects } from '../../src/log/pointers.ts';
import { driveSync, type Io } from '../../src/storage/io.ts';
import { nodeStorage } from '../../src/storage/node/file.ts';
import type { ByteStorage } from '../../src/storage/storage.ts';
import {
  type AttributeFacts,
  type Description,
  ourDescription,
  type Plain,
  plainElements,
  plainType,
  plainValue,
} from './describe.ts';

/** A file written at the level of its structure, which remembers what it ought to hold. */
export class Draft {
  readonly storage: ByteStorage;
  readonly structure: Structure;
  readonly committer: Committer;
  /** Attributes as they were set, by `path name`, and the data of datasets by path. */
  readonly attributes = new Map<string, AttributeFacts>();
  readonly data = new Map<string, readonly Plain[]>();

  private constructor(storage: ByteStorage, structure: Structure, committer: Committer) {
    this.storage = storage;
    this.structure = structure;
    this.committer = committer;
  }

  /** A new file. */
  static create(path: string): Draft {
    const storage = nodeStorage(path, 'w+');
    const structure = newStructure();
    driveSync(storage, perform({ op: 'truncate', size: 0 }));
    const superblock = { base: 0, end: SUPERBLOCK_SIZE, bytes: new Uint8Array(0) };
    const appender = new Appender({ name: path, superblock, power: false });
    return new Draft(storage, structure, new Committer(structure, appender, null));
  }

  /** A file that exists, to be appended to. */
  static open(path: string): Draft {
    const storage = nodeStorage(path, 'r+');
    try {
      const opened = driveSync(storage, openStructure());
      driveSync(storage, prepareWriting(opened));
      const appender = new Appender({ name: path, superblock: opened.superblock, power: false });
      return new Draft(storage, opened.structure, new Committer(opened.structure, appender, opened.extension));
    } catch (error) {
      storage.blocking?.close();
      throw error;
    }
  }

  /** Begins a log in a file of others, as h5log 0.1 did when such a file was changed. */
  static addLog(path: string): void {
    const draft = Draft.open(path);
    beginLog(draft.structure, { datasets: 0, logs: 0, tables: 0, config: 0, subfiles: 1 }, newToken());
    draft.close();
  }

  /** Closes the file and opens it again; what it ought to hold is remembered. */
  reopen(path: string): Draft {
    this.close();
    const draft = Draft.open(path);
    for (const [key, value] of this.attributes) draft.attributes.set(key, value);
    for (const [key, value] of this.data) draft.data.set(key, value);
    return draft;
  }

  get root(): ObjectNode {
    return this.structure.root;
  }

  now<T>(io: Io<T>): T {
    return driveSync(this.storage, io);
  }

  /** The object at a path. */
  at(path: string): ObjectNode {
    const node = this.now(this.structure.lookup(this.root, path));
    if (!node) throw new Error(`there is no ${path}`);
    return node;
  }

  #place(path: string): [parent: ObjectNode, name: string] {
    const cut = path.lastIndexOf('/');
    return [this.at(path.slice(0, cut) || '/'), path.slice(cut + 1)];
  }

  group(path: string): ObjectNode {
    return this.structure.createGroup(...this.#place(path));
  }

  datatype(path: string, dtype: DType): ObjectNode {
    return this.structure.createDatatype(...this.#place(path), dtype);
  }

  /** Makes a dataset; `values` is what its elements should be when others read it. */
  dataset(path: string, dataset: NewDataset, dtype: DType, values: ArrayLike<unknown>): ObjectNode {
    const node = this.structure.createDataset(...this.#place(path), dataset);
    this.data.set(
      path,
      Array.from(values, (value) => plainValue(dtype, value)),
    );
    return node;
  }

  /** A small contiguous dataset of whatever type is given. */
  numbers(path: string, dtype: DType, space: Dataspace, values: ArrayLike<unknown>): ObjectNode {
    const layout = contiguous(regionOf(encodeValues(dtype, values, values.length).bytes));
    return this.dataset(path, { dtype, space, layout }, dtype, values);
  }

  attribute(path: string, name: string, dtype: DType, space: Dataspace, value: unknown): void {
    this.now(setAttribute(this.structure, this.at(path), name, dtype, space, value));
    const shape = space.kind === 'simple' ? space.shape : space.kind === 'null' ? null : [];
    this.attributes.set(`${path} ${name}`, [name, plainType(dtype), shape, plainElements(dtype, space, value)]);
  }

  deleteAttribute(path: string, name: string): void {
    deleteAttribute(this.structure, this.at(path), name);
    this.attributes.delete(`${path} ${name}`);
  }

  link(path: string, target: ObjectNode): void {
    const [parent, name] = this.#place(path);
    this.structure.addLink(parent, name, { kind: 'hard', address: target.address }, target);
  }

  softLink(path: string, target: string): void {
    const [parent, name] = this.#place(path);
    this.structure.addLink(parent, name, { kind: 'soft', path: target }, null);
  }

  externalLink(path: string, file: string, target: string): void {
    const [parent, name] = this.#place(path);
    this.structure.addLink(parent, name, { kind: 'external', file, path: target }, null);
  }

  remove(path: string): void {
    this.structure.removeLink(...this.#place(path));
    for (const known of [...this.attributes.keys(), ...this.data.keys()]) {
      if (known === path || known.startsWith(`${path}/`) || known.startsWith(`${path} `)) {
        this.attributes.delete(known);
        this.data.delete(known);
      }
    }
  }

  move(from: string, to: string): void {
    this.structure.moveLink(...this.#place(from), ...this.#place(to));
    for (const map of [this.attributes, this.data] as Map<string, never>[]) {
      for (const [known, value] of [...map]) {
        if (known !== from && !known.startsWith(`${from}/`) && !known.startsWith(`${from} `)) continue;
        map.delete(known);
        map.set(to + known.slice(from.length), value);
      }
    }
  }

  /** Writes everything that changed; returns the bytes it took. */
  commit(): number {
    if (!this.committer.pending) return 0;
    const planned = this.committer.plan();
    this.now(this.committer.write(planned));
    return planned.bytes;
  }

  close(): void {
    // As a file does: between closes the lists of scales lag behind.
    this.structure.loadScales();
    settleScales(this.structure, [...linkedObjects(this.structure)]);
    this.commit();
    this.now(this.committer.appender.close());
    this.storage.blocking?.close();
  }
}

function* perform(step: { op: 'truncate'; size: number }): Io<void> {
  yield step;
}

export function regionOf(bytes: Uint8Array): FileExtent {
  return new FileExtent(bytes.length, () => [bytes]);
}

/** What our reader says about a file. */
export function ourDescribe(path: string): Description {
  const storage = nodeStorage(path, 'r');
  try {
    return driveSync(storage, ourDescription(driveSync(storage, openStructure()).structure));
  } finally {
    storage.blocking?.close();
  }
}

/** Cuts row-major float64 data into chunks, edges filled up with zeros, and applies filters; `skip` leaves chunks out. */
export function cutChunks(
  values: Float64Array,
  shape: readonly number[],
  chunk: readonly number[],
  filters: readonly FilterEntry[],
  skip: (at: readonly number[]) => boolean = () => false,
): ChunkEntry[] {
  const counts = shape.map((size, d) => Math.ceil(size / (chunk[d] as number)));
  const places: ChunkEntry[] = [];
  for (const at of grid(counts)) {
    if (skip(at)) continue;
    const data = new Float64Array(chunk.reduce((product, n) => product * n, 1));
    let i = 0;
    for (const inner of grid(chunk)) {
      const where = inner.map((c, d) => c + (at[d] as number) * (chunk[d] as number));
      if (where.every((c, d) => c < (shape[d] as number))) {
        data[i] = values[where.reduce((sum, c, d) => sum * (shape[d] as number) + c, 0)] as number;
      }
      i++;
    }
    const whole = { size: data.byteLength, elementSize: 8, shape: chunk };
    const bytes = withoutWaiting(applyFilters(new Uint8Array(data.buffer), filters, whole));
    places.push({ cell: at, address: regionOf(bytes), size: bytes.length, mask: 0 });
  }
  return places;
}

/** Every coordinate of a grid, the last dimension fastest. */
export function* grid(counts: readonly number[]): Generator<number[]> {
  const total = counts.reduce((product, n) => product * n, 1);
  for (let i = 0; i < total; i++) {
    const at: number[] = [];
    for (let rest = i, d = counts.length - 1; d >= 0; d--) {
      at[d] = rest % (counts[d] as number);
      rest = Math.floor(rest / (counts[d] as number));
    }
    yield at;
  }
}
