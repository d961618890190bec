import { addContext, H5LogError, printAs } from '../base/errors.ts';
import { checkNames } from '../base/options.ts';
import { checkType } from '../dtype/check.ts';
import type { DType } from '../dtype/model.ts';
import { isText } from '../dtype/text.ts';
import { deleteAttribute, setAttribute, setUnlessReferring } from '../hdf5/write/attributes.ts';
import { isAlias } from '../log/format/names.ts';
import { type AttributeValue, spaceOf, typeOf } from './attribute-values.ts';
import { lineOf, looked, type ObjectHandle } from './handle.ts';

/**
 * set: number float64, bigint int64 (uint64 above 2^63-1), boolean T.bool, string and string[] variable-length UTF-8, TypedArray its own
 * type, number[] float64, null a NULL dataspace; arrays are 1-d unless shape says otherwise; an existing name is replaced.
 * get: scalars as JavaScript scalars, else flat arrays; undefined if absent.
 */
export interface Attributes extends Iterable<[string, AttributeValue]> {
  readonly size: number;
  get(name: string): AttributeValue | undefined;
  describe(name: string): { dtype: DType; shape: readonly number[] | null } | undefined;
  set(name: string, value: AttributeValue, options?: { dtype?: DType; shape?: readonly number[] }): void;
  has(name: string): boolean;
  delete(name: string): void;
  keys(): IterableIterator<string>;
}

/** The attributes of a group or dataset; the connector's own are not among them. */
export class ObjectAttributes implements Attributes {
  readonly #owner: ObjectHandle;

  constructor(owner: ObjectHandle) {
    this.#owner = owner;
  }

  get size(): number {
    let count = 0;
    for (const _ of this.keys()) count++;
    return count;
  }

  *keys(): IterableIterator<string> {
    const { session, node } = this.#owner;
    const names = new Set([...node.attributes.keys()].map((stored) => session.names.shownAttribute(stored)));
    for (const name of names) if (name !== undefined) yield name;
  }

  *[Symbol.iterator](): IterableIterator<[string, AttributeValue]> {
    for (const name of this.keys()) yield [name, this.get(name) as AttributeValue];
  }

  has(name: string): boolean {
    return this.#owner.node.attributes.has(this.#stored(name));
  }

  get(name: string): AttributeValue | undefined {
    const { session, node, path } = this.#owner;
    const read = () => session.now(session.structure.attribute(node, this.#stored(name)));
    return looked(session, () => path, read) as AttributeValue | undefined;
  }

  describe(name: string): { dtype: DType; shape: readonly number[] | null } | undefined {
    const { session, node } = this.#owner;
    const parts = session.structure.describeAttribute(node, this.#stored(name));
    if (!parts) return undefined;
    const { dtype, space } = parts;
    if (space.kind === 'simple') return { dtype, shape: space.shape };
    return { dtype, shape: space.kind === 'null' ? null : [] };
  }

  set(name: string, value: AttributeValue, options: { dtype?: DType; shape?: readonly number[] } = {}): void {
    const { session, path, node } = this.#owner;
    session.writable();
    if (node.linkCount === 0 && node !== session.structure.root)
      throw new H5LogError('NOT_FOUND', `${path} was deleted`, { file: session.storage.name, object: path });
    session.change(
      'attributes.set',
      () => ({ path, name, value, ...options }),
      () => {
        checkNames('attributes.set', options, { dtype: true, shape: true });
        this.put(name, value, options);
      },
    );
  }

  /** Sets it as a part of another call. */
  put(name: string, value: AttributeValue, options: { dtype?: DType; shape?: readonly number[] } = {}): void {
    const { session, path } = this.#owner;
    const dtype = options.dtype === undefined ? typeOf(name, value) : checkType(options.dtype);
    const space = spaceOf(name, value, dtype, options.shape);
    const { node } = this.#owner;
    try {
      const { structure } = session;
      // Only what refers to objects has to look them up.
      for (const stored of this.#storedNames(name))
        if (setUnlessReferring(structure, node, stored, dtype, space, value))
          session.now(setAttribute(structure, node, stored, dtype, space, value));
    } catch (error) {
      throw addContext(error, `attribute ${name} of ${path}: `, { file: session.storage.name, object: path }, 'object');
    }
  }

  delete(name: string): void {
    const { session, path } = this.#owner;
    session.writable();
    session.change(
      'attributes.delete',
      () => ({ path, name }),
      () => {
        if (!this.has(name))
          throw new H5LogError('NOT_FOUND', `${path} has no attribute ${name}`, {
            file: session.storage.name,
            object: path,
          });
        const { node } = this.#owner;
        for (const stored of this.#storedNames(name))
          if (node.attributes.has(stored)) deleteAttribute(session.structure, node, stored);
      },
    );
  }

  /** @internal For printing. */
  get line(): string {
    return lineOf(`Attributes of ${this.#owner.path}`, () => `: ${[...this.keys()].join(', ') || 'none'}`);
  }

  /** All names in the file: in a log that others see, one of a user's `_x` is for them. */
  #storedNames(name: string): string[] {
    const stored = this.#stored(name);
    const { session } = this.#owner;
    if (session.log?.publishState?.sequence == null || !isAlias(name)) return [stored];
    return [session.names.stored(name), name];
  }

  #stored(name: string): string {
    if (!isText(name) || name === '')
      throw new H5LogError('OPTION', `${JSON.stringify(name)} is not a name for an attribute`);
    return this.#owner.session.names.storedAttribute(name, this.#owner.node.attributes);
  }
}

printAs(ObjectAttributes.prototype, 'Attributes', (attributes) => attributes.line);
