import { addContext, formatError } from '../../base/errors.ts';
import type { FileSession } from '../../connector/file-session.ts';
import { containsReference, containsVlen } from '../../dtype/describe.ts';
import { type DType, publicType } from '../../dtype/model.ts';
import { Cursor } from '../../hdf5/format/cursor.ts';
import { attributeParts } from '../../hdf5/graph/attribute-value.ts';
import type { Attribute, HeaderMessage, ObjectNode, Relocatable } from '../../hdf5/graph/object-node.ts';
import { relocatedCopy, setReferences } from '../../hdf5/graph/references.ts';
import { type NewLayout, unallocated } from '../../hdf5/layouts/new-dataset.ts';
import { parseAttribute } from '../../hdf5/messages/attribute.ts';
import { type Dataspace, SCALAR_SPACE, simpleSpace } from '../../hdf5/messages/dataspace.ts';
import { parseDatatype } from '../../hdf5/messages/datatype.ts';
import type { FilterEntry } from '../../hdf5/messages/filter-pipeline.ts';
import * as MESSAGE_FLAG from '../../hdf5/messages/message-flags.ts';
import * as MESSAGE from '../../hdf5/messages/message-types.ts';
import { newStructure } from '../../hdf5/prepare-writing.ts';
import { parseShared } from '../../hdf5/read/shared-messages.ts';
import { setEncodedAttribute } from '../../hdf5/write/attributes.ts';
import { replaceMessage } from '../../hdf5/write/rewrite.ts';
import type { Structure } from '../../hdf5/write/structure.ts';
import { settleScales } from '../../log/format/scales.ts';
import type { Io } from '../../storage/io.ts';
import type { InputLink, InputObject } from './input-objects.ts';

/** The storage layouts of the output's datasets. */
type Layouts = ReadonlyMap<InputObject, NewLayout>;

/** The structure of the output, and its objects by those of the input. */
interface OutputStructure {
  readonly structure: Structure;
  readonly made: ReadonlyMap<ObjectNode, ObjectNode>;
}

/** Makes the structure of the output: all objects of the input under the names that users see, with data where `layouts` say. */
export function* outputStructure(
  session: FileSession,
  objects: readonly InputObject[],
  layouts: Layouts,
  earliest: boolean,
): Io<OutputStructure> {
  const builder = new Builder(session, layouts);
  builder.structure.earliest = earliest;
  // Datasets last, because the committed datatypes that they use must exist. Links keep the creation order of the input.
  for (const kinds of [['group', 'datatype'], ['dataset']]) {
    for (const object of objects) builder.link(object, ({ to }) => kinds.includes(to?.node.kind ?? 'group'));
  }
  for (const object of objects) {
    yield* builder.fill(object);
    yield* builder.attributes(object);
  }
  settleScales(builder.structure, [...builder.made.values()]);
  return builder;
}

class Builder {
  readonly structure = newStructure();
  readonly #session: FileSession;
  readonly #layouts: Layouts;
  readonly made = new Map<ObjectNode, ObjectNode>();

  constructor(session: FileSession, layouts: Layouts) {
    this.#session = session;
    this.#layouts = layouts;
    this.#adopt(session.structure.root, this.structure.root);
  }

  /** Registers an output object; it tracks creation order if the input does. */
  #adopt(from: ObjectNode, to: ObjectNode): void {
    this.made.set(from, to);
    Object.assign(to.linkOrder, { tracked: from.linkOrder.tracked, indexed: from.linkOrder.indexed });
    Object.assign(to.attributeOrder, { tracked: from.attributeOrder.tracked, indexed: from.attributeOrder.indexed });
    to.flags = from.flags & 0x0c;
  }

  /** Creates the wanted links of a group, and the objects that have no output object yet. */
  link(object: InputObject, wanted: (link: InputLink) => boolean): void {
    const group = this.made.get(object.node);
    if (!group) return;
    object.links.forEach((link, i) => {
      if (!wanted(link)) return;
      group.linkOrder.next = i;
      const { name, target, to } = link;
      const known = to && this.made.get(to.node);
      if (!to) this.structure.addLink(group, name, target, null);
      else if (known) this.structure.addLink(group, name, { kind: 'hard', address: known.address }, known);
      else this.#adopt(to.node, this.#create(group, name, to));
    });
    group.linkOrder.next = object.links.length;
  }

  #create(group: ObjectNode, name: string, object: InputObject): ObjectNode {
    const { node, path } = object;
    if (node.kind === 'group') return this.structure.createGroup(group, name);
    const message = node.message(MESSAGE.datatype);
    if (!message) throw formatError(`${path} has no datatype`, this.#session.structure.loader.file.base + node.address);
    if (node.kind === 'dataset') return this.#createDataset(group, name, object, message);
    const { bytes, type } = describedType(message.content, message.offset);
    const made = this.structure.createDatatype(group, name, publicType(type));
    replaceMessage(this.structure, made, MESSAGE.datatype, bytes);
    return made;
  }

  #createDataset(group: ObjectNode, name: string, object: InputObject, message: HeaderMessage): ObjectNode {
    const { node, logged } = object;
    const layout = this.#layouts.get(object) ?? unallocated;
    const parts = this.#session.structure.dataset(node);
    const shared = (message.flags & MESSAGE_FLAG.shared) !== 0;
    const committed = shared ? this.#committed(new Cursor(message.bytes, message.offset)) : undefined;
    const { fill } = parts;
    // The log ignores a fill value whose size is not that of the type.
    const value = fill.value instanceof Uint8Array && fill.value.length === parts.type.size ? fill.value : undefined;
    const made = this.structure.createDataset(group, name, {
      dtype: committed ?? parts.dtype,
      space: logged ? spaceOf(logged) : parts.space,
      layout,
      ...(logged ? {} : { allocation: fill.allocation }),
      ...(value ? { fill: value } : fill.value === 'undefined' && !logged ? { fill: 'undefined' } : {}),
      filters: filtersOf(object, layout, parts.filters),
    });
    // Copied byte for byte: some types (time, complex) say more than a dtype does.
    const { bytes } = describedType(message.content, message.offset);
    if (!committed) replaceMessage(this.structure, made, MESSAGE.datatype, bytes);
    return made;
  }

  /** The output object of the committed datatype that a shared record points to; undefined if no link leads to it. */
  #committed(record: Cursor): ObjectNode | undefined {
    const { loader } = this.#session.structure;
    const shared = parseShared(record, loader.file);
    const node = shared.kind === 'object' ? loader.nodes.get(shared.address) : undefined;
    return node && this.made.get(node);
  }

  /** A fill value of variable length is in the heap, and a reference leads to an object: both are elsewhere in the output. */
  *fill({ node, logged }: InputObject): Io<void> {
    if (node.kind !== 'dataset' || logged) return;
    const { structure } = this.#session;
    const { fill, dtype, type } = structure.dataset(node);
    const { value } = fill;
    const message = this.made.get(node)?.message(MESSAGE.fill);
    if (!message || !(value instanceof Uint8Array) || value.length !== type.size) return;
    if (!containsVlen(dtype) && !containsReference(dtype)) return;
    const moved = yield* this.#relocated(dtype, value, 1);
    const at = message.bytes.length - value.length;
    message.bytes = message.content = message.bytes.slice();
    message.bytes.set(moved.bytes, at);
    setReferences(
      message,
      moved.targets.map((slot) => ({ ...slot, at: slot.at + at })),
      moved.heap.map((slot) => ({ ...slot, at: slot.at + at })),
    );
  }

  /** Elements with what they have in the heap, for the output. */
  *#relocated(dtype: DType, data: Uint8Array, count: number): Io<Relocatable> {
    const { loader, heap } = this.#session.structure;
    yield* heap.load(dtype, data, count);
    return relocatedCopy(dtype, data, count, heap.contents(), (address) => {
      const node = loader.nodes.get(address);
      return node && this.made.get(node);
    });
  }

  *attributes({ node, path, attributes }: InputObject): Io<void> {
    const made = this.made.get(node);
    if (!made) return;
    for (const [name, attribute] of attributes) {
      try {
        yield* this.#attribute(made, name, attribute);
      } catch (error) {
        throw addContext(error, `attribute ${name} of ${path}: `, { object: path });
      }
    }
  }

  *#attribute(made: ObjectNode, name: string, attribute: Attribute): Io<void> {
    const { loader } = this.#session.structure;
    const { content, offset } = attribute.message;
    const parts = attributeParts(attribute, loader.file.lengthSize);
    const { type } = parseAttribute(new Cursor(content, offset), loader.file.lengthSize);
    const committed =
      'sharedAt' in type
        ? this.#committed(new Cursor(content, offset, type.sharedAt, type.sharedAt + type.sharedSize))
        : undefined;
    const described = attribute.sharedType ?? content.subarray(typeAt(content));
    const value = yield* this.#relocated(parts.dtype, parts.data, parts.count);
    const as = committed ?? describedType(described, offset).bytes;
    setEncodedAttribute(this.structure, made, name, as, fixedSpace(parts.space), value);
  }
}

/** Offset of the type in an attribute message. The name precedes it, after 8 bytes in versions 1 and 2, 9 in version 3. */
function typeAt(content: Uint8Array): number {
  const version = content[0] as number;
  const length = (content[2] as number) | ((content[3] as number) << 8);
  return (version === 3 ? 9 : 8) + (version === 1 ? Math.ceil(length / 8) * 8 : length);
}

/** The encoded datatype at the beginning of `content`, without the bytes behind it. */
function describedType(
  content: Uint8Array,
  offset: number,
): { bytes: Uint8Array; type: ReturnType<typeof parseDatatype> } {
  const cursor = new Cursor(content, offset);
  const type = parseDatatype(cursor);
  return { bytes: content.slice(0, cursor.at), type };
}

function spaceOf({ shape, maxShape }: { shape: readonly number[]; maxShape: readonly (number | null)[] }): Dataspace {
  return shape.length === 0 ? SCALAR_SPACE : simpleSpace(shape, maxShape);
}

/** Attributes never grow. */
function fixedSpace(space: Dataspace): Dataspace {
  return space.kind === 'simple' ? simpleSpace(space.shape) : space;
}

/** Only chunks can be filtered. */
function filtersOf({ logged }: InputObject, layout: NewLayout, stored: readonly FilterEntry[]): readonly FilterEntry[] {
  if (!logged) return stored;
  return layout.kind === 'chunked' ? logged.filters : [];
}
