import { type ErrorCode, H5LogError, isH5LogError, isUnreadable, printAs } from '../base/errors.ts';
import { checkNames } from '../base/options.ts';
import { deferrable } from '../connector/deferred.ts';
import type { FileSession, Found } from '../connector/file-session.ts';
import { checkType } from '../dtype/check.ts';
import type { DType } from '../dtype/model.ts';
import { isText } from '../dtype/text.ts';
import { NotLoaded } from '../hdf5/format/file-bytes.ts';
import { committedType } from '../hdf5/graph/dataset-header.ts';
import type { Link, ObjectNode } from '../hdf5/graph/object-node.ts';
import type { LinkTarget } from '../hdf5/messages/link.ts';
import { checkMaxShape, checkShape } from '../space/shape.ts';
import { driveAsync } from '../storage/io.ts';
import type { AttributeValue } from './attribute-values.ts';
import { type Attributes, ObjectAttributes } from './attributes.ts';
import { checkElements, Dataset } from './dataset.ts';
import { CREATE, type DatasetOptions } from './dataset-options.ts';
import type { File } from './file.ts';
import { fileOf, handle, lineOf, looked, ObjectHandle } from './handle.ts';
import { defineDataset } from './new-dataset.ts';

/** The last load of each file. */
const loads = new WeakMap<FileSession, Promise<unknown>>();

/** A group: named links to groups and datasets. Paths are relative to it, or begin at the root with a slash. */
export class Group {
  readonly kind = 'group' as const;
  readonly path: string;
  readonly attributes: Attributes;
  /** @internal */
  readonly [handle]: ObjectHandle;
  readonly #file: File | null;

  /** @internal */
  constructor(session: FileSession, file: File | null, path: string, node: ObjectNode) {
    this[handle] = new ObjectHandle(session, path, node);
    this.#file = file;
    this.path = path;
    this.attributes = new ObjectAttributes(this[handle]);
  }

  get file(): File {
    // Only a File has none: it is its own.
    return this.#file ?? (this as unknown as File);
  }

  get #session(): FileSession {
    return this[handle].session;
  }

  get #node(): ObjectNode {
    return this[handle].node;
  }

  get(path: string): Group | Dataset | undefined {
    const found = this.#find(path);
    return found && this.#wrap(found, this.#absolute(path));
  }

  group(path: string): Group {
    const found = this.get(path);
    if (found instanceof Group) return found;
    throw this.#error(
      'NOT_FOUND',
      found ? `${this.#absolute(path)} is a dataset, not a group` : `there is no group ${this.#absolute(path)}`,
      path,
    );
  }

  dataset(path: string): Dataset;
  dataset<D extends DType>(path: string, dtype: D): Dataset<D>;
  dataset(path: string, dtype?: DType): Dataset {
    const found = this.get(path);
    if (!(found instanceof Dataset)) {
      throw this.#error(
        'NOT_FOUND',
        found ? `${this.#absolute(path)} is a group, not a dataset` : `there is no dataset ${this.#absolute(path)}`,
        path,
      );
    }
    if (dtype !== undefined) checkElements(found, dtype);
    return found;
  }

  has(path: string): boolean {
    const found = this.#find(path);
    return found !== undefined && found.node.kind !== 'datatype';
  }

  /**
   * Loads the object at a path, and what is below it down to `depth` (default 1: its direct children), with values of attributes. For files
   * that were opened with `lazy`; of others everything is there, or comes when it is asked for.
   */
  async load(path = '.', options: { depth?: number; signal?: AbortSignal } = {}): Promise<this> {
    checkNames('load', options, { depth: true, signal: true });
    const { depth = 1, signal } = options;
    if (!(depth >= 0) || !(Number.isInteger(depth) || depth === Infinity))
      throw new H5LogError('OPTION', `depth must be a whole number that is not negative, or Infinity, got ${depth}`);
    const session = this.#session;
    const where = this.#absolute(checkedPath(path));
    signal?.throwIfAborted();
    // One after the other: what one loads, the next finds.
    const loading = (loads.get(session) ?? Promise.resolve()).then(() =>
      driveAsync(session.storage, session.load(where, depth), signal),
    );
    loads.set(
      session,
      loading.catch(() => undefined),
    );
    await loading;
    if (!this.#find(where)) throw this.#error('NOT_FOUND', `there is no ${where}`, path);
    return this;
  }

  /** The names in the group, in the order of their creation where the file keeps it. */
  *keys(): IterableIterator<string> {
    for (const { name } of this.#links()) yield name;
  }

  /** Names with what they lead to; undefined where a link leads nowhere, to another file that cannot be opened, or to an object that cannot be read: `get` says why. */
  *children(): IterableIterator<[string, Group | Dataset | undefined]> {
    for (const { name, link } of this.#links()) {
      const found = this.#follow(name, link);
      yield [name, found && this.#wrap(found, join(this.path, name))];
    }
  }

  /** Links as they are, with what they lead to if that is in reach. */
  *links(): IterableIterator<{
    name: string;
    kind: 'hard' | 'soft' | 'external' | 'other';
    object?: 'group' | 'dataset' | 'datatype';
    target?: string;
    file?: string;
  }> {
    const session = this.#session;
    for (const { name, link } of this.#links()) {
      const { target } = link;
      const kind = target.kind === 'user' ? 'other' : target.kind;
      const found = this.#follow(name, link);
      yield {
        name,
        kind,
        ...(found && { object: found.node.kind }),
        ...(target.kind === 'soft' && { target: session.structure.paths.shown(target.path) }),
        ...(target.kind === 'external' && { target: target.path, file: target.file }),
      };
    }
  }

  /** A committed datatype. */
  datatype(path: string): {
    readonly kind: 'datatype';
    readonly path: string;
    readonly dtype: DType;
    readonly attributes: Attributes;
  } {
    const found = this.#find(path);
    if (found?.node.kind !== 'datatype')
      throw this.#error('NOT_FOUND', `there is no committed datatype ${this.#absolute(path)}`, path);
    const where = found.session === this.#session ? this.#absolute(path) : found.path;
    const attributes = new ObjectAttributes(new ObjectHandle(found.session, where, found.node));
    return { kind: 'datatype', path: where, dtype: committedType(found.node), attributes };
  }

  *#links(): Iterable<{ name: string; link: Link }> {
    const node = this.#node;
    looked(
      this.#session,
      () => this.path,
      () => {
        if (node.unread) throw new NotLoaded();
      },
    );
    for (const link of [...node.links.values()]) {
      const name = this.#session.shownIn(node, link.name);
      if (name !== undefined) yield { name, link };
    }
  }

  #find(path: string): Found | undefined {
    const session = this.#session;
    return looked(
      session,
      () => this.#absolute(path),
      () => session.find(this.#node, checkedPath(path)),
    );
  }

  /** What a link leads to. A list goes on where another file cannot be opened, or an object cannot be read; `get` tells why. */
  #follow(name: string, link: Link): Found | undefined {
    const session = this.#session;
    const follow = (): Found | undefined => {
      try {
        return session.follow(this.#node, this.path, link);
      } catch (error) {
        if (link.target.kind === 'hard' ? !isUnreadable(error) : !isH5LogError(error)) throw error;
        return undefined;
      }
    };
    return looked(session, () => join(this.path, name), follow);
  }

  /** An object of this file: what is behind an external link can only be read. */
  #own(found: Found | undefined): ObjectNode | undefined {
    if (found && found.session !== this.#session) found.session.writable();
    return found?.node;
  }

  #wrap({ session, node, path: there }: Found, asked: string): Group | Dataset | undefined {
    // Behind an external link the object has the path that it has in its own file.
    const path = session === this.#session ? asked : there;
    if (node.kind === 'group') return new Group(session, this.file, path, node);
    if (node.kind === 'dataset') return new Dataset(session, this.file, path, node);
    return undefined;
  }

  #absolute(path: string): string {
    return join(path.startsWith('/') ? '/' : this.path, path);
  }

  // ---------------------------------------------------------------- changing

  /** Makes a group; groups on the way to it are made as well. */
  createGroup(path: string): Group {
    return this.#change('createGroup', path, {}, () => {
      const { parent, name } = this.#place(path);
      const node = this.#session.structure.createGroup(parent, name);
      return new Group(this.#session, this.file, this.#absolute(path), node);
    });
  }

  /** Makes a dataset; groups on the way to it are made as well. */
  createDataset<const D extends DType>(path: string, options: DatasetOptions<D>): Dataset<D> {
    return this.#change('createDataset', path, options, () => this.#createDataset(path, options));
  }

  #createDataset<const D extends DType>(path: string, options: DatasetOptions<D>): Dataset<D> {
    const definition = defineDataset(this.#absolute(checkedPath(path)), options, this.#session.log !== null);
    const { attributes } = options;
    const { parent, name } = this.#place(path);
    const node = definition.create(this.#session, parent, name);
    const dataset = new Dataset<D>(this.#session, this.file, this.#absolute(path), node);
    if (!import.meta.page && node.prepared) return dataset;
    const copy = !import.meta.page && attributes && deferrable(this.#session.comm, attributes);
    if (copy) node.defer(() => describe(dataset[handle], copy));
    else if (attributes) {
      describe(dataset[handle], attributes, () => {
        this.#session.structure.removeLink(parent, name);
        this.#session.dropped();
      });
    }
    return dataset;
  }

  /** The group, made if it is not there. */
  requireGroup(path: string): Group {
    const found = this.get(path);
    if (!found) return this.createGroup(path);
    if (found instanceof Group) return found;
    throw this.#error('EXISTS', `${this.#absolute(path)} exists already, as a dataset`, path);
  }

  /**
   * The dataset, made if it is not there. DTYPE or SHAPE if it is there and differs; dimensions that can grow may have grown since. Fill,
   * chunks, filters and attributes count for a new dataset only.
   */
  requireDataset<const D extends DType>(path: string, options: DatasetOptions<D>): Dataset<D> {
    const found = this.get(path);
    if (!found) return this.createDataset(path, options);
    if (!(found instanceof Dataset))
      throw this.#error('EXISTS', `${this.#absolute(path)} exists already, as a group`, path);
    checkRequired(found, options as DatasetOptions<DType>);
    return found as unknown as Dataset<D>;
  }

  /** Makes a committed datatype; groups on the way to it are made as well. */
  createDatatype(path: string, dtype: DType): void {
    this.#change('createDatatype', path, { dtype }, () => {
      checkType(dtype);
      const { parent, name } = this.#place(path);
      this.#session.structure.createDatatype(parent, name, dtype);
    });
  }

  createSoftLink(path: string, target: string): void {
    this.#change('createSoftLink', path, { target }, () => {
      if (!isText(target) || target === '') throw new H5LogError('OPTION', 'a soft link needs a target path');
      this.#link(path, { kind: 'soft', path: this.#session.storedPath(target) }, null);
    });
  }

  createHardLink(path: string, target: string): void {
    this.#change('createHardLink', path, { target }, () => {
      const node = this.#own(this.#session.find(this.#node, checkedPath(target)));
      if (!node) throw this.#error('NOT_FOUND', `there is no ${this.#absolute(target)} to link to`, target);
      this.#link(path, { kind: 'hard', address: node.address }, node);
    });
  }

  createExternalLink(path: string, file: string, target: string): void {
    this.#change('createExternalLink', path, { file, target }, () => {
      if (!isText(file) || file === '' || !isText(target) || target === '')
        throw new H5LogError('OPTION', 'an external link needs a file and a path in it');
      this.#link(path, { kind: 'external', file, path: target }, null);
    });
  }

  #link(path: string, target: LinkTarget, node: ObjectNode | null): void {
    const { parent, name } = this.#place(path);
    this.#session.structure.addLink(parent, name, target, node);
  }

  /** Gives what is at `from` the name `to`; data stays where it is. */
  move(from: string, to: string): void {
    this.#change('move', from, { to }, () => {
      const { structure } = this.#session;
      const source = this.#existing(from);
      const inside = this.#absolute(to).startsWith(`${this.#absolute(from)}/`);
      if (inside)
        throw new H5LogError('OPTION', `${this.#absolute(from)} cannot be moved into itself`, {
          object: this.#absolute(from),
        });
      const { parent, name } = this.#place(to);
      structure.moveLink(source.parent, source.name, parent, name);
    });
  }

  /** Removes a name; an object goes when its last name does. */
  delete(path: string): void {
    this.#change('delete', path, {}, () => {
      const { parent, name } = this.#existing(path);
      this.#session.structure.removeLink(parent, name);
      this.#session.dropped();
    });
  }

  /** Changes the structure; of several ranks all make the same call. */
  #change<T>(call: string, path: string, details: object, work: () => T): T {
    this.#session.writable();
    return this.#session.change(call, () => ({ path: this.#absolute(checkedPath(path)), ...details }), work);
  }

  #existing(path: string): { parent: ObjectNode; name: string } {
    const session = this.#session;
    const components = namesIn(checkedPath(path));
    const last = components.pop();
    const from = path.startsWith('/') ? session.structure.root : this.#node;
    const above = this.#own(session.find(from, components.join('/')));
    const name = last === undefined || !above ? undefined : session.storedIn(above, last);
    if (!above || name === undefined || !above.links.has(name))
      throw this.#error('NOT_FOUND', `there is no ${this.#absolute(path)}`, path);
    return { parent: above, name };
  }

  /** The group a new name goes into, made if it is not there, once it is sure that the name is free. */
  #place(path: string): { parent: ObjectNode; name: string } {
    const session = this.#session;
    session.writable();
    const components = namesIn(checkedPath(path));
    const last = components.pop();
    if (last === undefined) throw this.#error('EXISTS', `${this.#absolute(path)} exists already`, path);
    let parent = path.startsWith('/') ? session.structure.root : this.#node;
    const missing: string[] = [];
    for (const component of components) {
      const next = missing.length > 0 ? undefined : this.#own(session.find(parent, component));
      if (next && next.kind !== 'group')
        throw this.#error('EXISTS', `${component} on the way to ${this.#absolute(path)} is not a group`, path);
      if (next) parent = next;
      else {
        // A link that leads nowhere is in the way as well.
        if (missing.length === 0 && parent.links.has(session.storedIn(parent, component))) {
          throw this.#error(
            'NOT_FOUND',
            `the link ${component} on the way to ${this.#absolute(path)} leads nowhere`,
            path,
          );
        }
        missing.push(component);
      }
    }
    if (missing.length === 0 && parent.links.has(session.storedIn(parent, last)))
      throw this.#error('EXISTS', `${this.#absolute(path)} exists already`, path);
    for (const component of missing) parent = session.structure.createGroup(parent, session.names.stored(component));
    return { parent, name: session.names.stored(last) };
  }

  #error(code: ErrorCode, message: string, path: string): H5LogError {
    return new H5LogError(code, message, { file: this.#session.storage.name, object: this.#absolute(path) });
  }
}

/**
 * Throws unless a dataset is what `requireDataset` asks for: the same type and maxShape, and the same shape but for dimensions that can
 * grow, which may have grown since. Fill, chunks, filters and attributes stay as they are.
 */
function checkRequired(dataset: Dataset, options: DatasetOptions<DType>): void {
  checkNames('requireDataset', options, CREATE);
  checkElements(dataset, checkType(options.dtype));
  const shape = checkShape(options.shape);
  const maxShape = checkMaxShape(options.maxShape, shape);
  const same =
    maxShape.length === dataset.rank &&
    maxShape.every((limit, d) => limit === dataset.maxShape[d]) &&
    shape.every(
      (size, d) => size === dataset.shape[d] || (size !== maxShape[d] && size < (dataset.shape[d] as number)),
    );
  if (same) return;
  const text = (sizes: readonly number[], limits: readonly (number | null)[]): string =>
    `[${sizes.join(', ')}] of at most [${limits.map((size) => size ?? 'unlimited').join(', ')}]`;
  const { path } = dataset;
  const message = `${path} is ${text(dataset.shape, dataset.maxShape)}, not ${text(shape, maxShape)}`;
  throw new H5LogError('SHAPE', message, { file: dataset[handle].session.storage.name, object: path });
}

printAs(Group.prototype, 'Group', (group) => {
  const of = ` of ${fileOf(group[handle])}`;
  return lineOf(`Group ${group.path}`, () => ` (${membersIn(group)})${of}`);
});

export function membersIn(group: Group): string {
  const count = [...group.keys()].length;
  return `${count} member${count === 1 ? '' : 's'}`;
}

/** Gives a new dataset its attributes; if one of them cannot be set, what was made is undone. */
function describe(object: ObjectHandle, attributes: Readonly<Record<string, AttributeValue>>, undo?: () => void): void {
  const owned = new ObjectAttributes(object);
  try {
    for (const [name, value] of Object.entries(attributes)) owned.put(name, value);
  } catch (error) {
    undo?.();
    throw error;
  }
}

/** A path from the path of a group, which is never taken apart: in a deep file that would add up. */
function join(base: string, path: string): string {
  const above = base === '/' ? '' : base;
  if (isName(path)) return `${above}/${path}`;
  const parts = namesIn(path);
  return parts.length === 0 ? base : `${above}/${parts.join('/')}`;
}

/** A path of one name, as nearly all are. */
const isName = (path: string): boolean => path !== '' && path !== '.' && !path.includes('/');

function namesIn(path: string): string[] {
  if (isName(path)) return [path];
  return path.split('/').filter((part) => part !== '' && part !== '.');
}

function checkedPath(path: unknown): string {
  if (isText(path) && path !== '') return path;
  throw new H5LogError('OPTION', `${JSON.stringify(path)} is not a path`);
}
