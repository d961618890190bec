import { formatError } from '../../base/errors.ts';
import { T } from '../../dtype/construct.ts';
import { putAddress } from '../../hdf5/format/byte-writer.ts';
import { type FileExtent, ObjectNode } from '../../hdf5/graph/object-node.ts';
import { contiguous, type NewDataset } from '../../hdf5/layouts/new-dataset.ts';
import { encodeAttribute } from '../../hdf5/messages/attribute.ts';
import { type Dataspace, simpleSpace } from '../../hdf5/messages/dataspace.ts';
import * as MESSAGE from '../../hdf5/messages/message-types.ts';
import { addAttributeMessage, setPlainAttribute } from '../../hdf5/write/attributes.ts';
import { createPrepared, HeaderTemplate } from '../../hdf5/write/prepared.ts';
import { type Structure, untrackOrder } from '../../hdf5/write/structure.ts';
import type { Io } from '../../storage/io.ts';
import type { TableOptions } from './table.ts';

/** The group that holds log and tables, and the root attribute that counts them. */
export const LOG_GROUP = '_LOG';
/** Where the commit records are in a file whose data is in subfiles: it has no log of its own. */
export const COMMITS_GROUP = '_COMMITS';
export const COUNTS_ATTRIBUTE = '_int_att';

const COUNTS_SPACE = simpleSpace([5]);
const BYTES = T.bitfield(1);

/** The five numbers of `_int_att`. */
export interface LogCounts {
  /** Datasets ever created: the next dataset's ID. */
  readonly datasets: number;
  readonly logs: number;
  readonly tables: number;
  readonly config: number;
  /** 1 without subfiles. */
  readonly subfiles: number;
}

/** Configuration bits, element 3 of `_int_att`. */
export const CONFIG = {
  merge: 0x001,
  encode: 0x002,
  zip: 0x004,
  share: 0x008,
  passthru: 0x010,
  aligned: 0x100,
  subfiling: 0x200,
} as const;

/** The series of datasets: log data and tables in the log group, commit records there or in a group of their own. */
export const SERIES = { logs: '_ld_', tables: '_md_', records: '_cr_' } as const;

/** The group of the commit records. */
export function recordsGroup({ config }: LogCounts): string {
  return config & CONFIG.subfiling ? COMMITS_GROUP : LOG_GROUP;
}

/** Whether the file has a log, and what its counts are. */
export function* readCounts(structure: Structure): Io<LogCounts | undefined> {
  const value = yield* structure.attribute(structure.root, COUNTS_ATTRIBUTE);
  if (!(value instanceof Int32Array) || value.length < 5) return undefined;
  const [datasets, logs, tables, config, subfiles] = value as unknown as [number, number, number, number, number];
  return { datasets, logs, tables, config, subfiles };
}

/** Writes the counts; they become part of the file with the next commit. */
export function writeCounts(structure: Structure, counts: LogCounts): void {
  const bytes = new Uint8Array(20);
  const view = new DataView(bytes.buffer);
  const { datasets, logs, tables, config, subfiles } = counts;
  [datasets, logs, tables, config, subfiles].forEach((count, i) => {
    view.setInt32(i * 4, count, true);
  });
  setPlainAttribute(structure, structure.root, COUNTS_ATTRIBUTE, 'int32', COUNTS_SPACE, bytes);
}

/** The file offset of a log dataset, as an attribute of it: programs that copy objects move the data, but not what tables say. */
const ADDRESS_ATTRIBUTE = '_address';
/** Encoded once: every flush writes one, and they differ in eight bytes. */
const ADDRESS_MESSAGE = encodeAttribute(ADDRESS_ATTRIBUTE, 'int64', simpleSpace([1]), new Uint8Array(8));

export function* readAddress(structure: Structure, node: ObjectNode): Io<number | undefined> {
  const value = yield* structure.attribute(node, ADDRESS_ATTRIBUTE);
  return value instanceof BigInt64Array && value.length === 1 ? Number(value[0]) : undefined;
}

function addressMessage(address: number): Uint8Array {
  const body = ADDRESS_MESSAGE.body.slice();
  putAddress(body, ADDRESS_MESSAGE.dataAt, address);
  return body;
}

/** A member of a series is a dataset of bytes, at an address or in an extent of the next commit. */
function memberOf(size: number, data: number | FileExtent): NewDataset {
  const layout = contiguous(data);
  return { dtype: BYTES, space: simpleSpace([size]), layout, allocation: 'early', untracked: true };
}

/** An encoded member, and where its numbers are: every flush adds three of them. */
class MemberTemplate {
  readonly header: HeaderTemplate;
  readonly space: number;
  readonly layout: number;
  /** -1 of members without the attribute. */
  readonly address: number;

  constructor(structure: Structure, hasAddress: boolean) {
    const node = new ObjectNode('dataset');
    untrackOrder(node);
    structure.addDataset(node, memberOf(1, 0));
    if (hasAddress) addAttributeMessage(node, ADDRESS_ATTRIBUTE, addressMessage(0));
    this.header = new HeaderTemplate(node);
    this.space = this.header.find(MESSAGE.dataspace) + 4;
    this.layout = this.header.find(MESSAGE.layout) + 2;
    this.address = hasAddress ? this.header.find(MESSAGE.attribute) + ADDRESS_MESSAGE.dataAt : -1;
  }
}

let plainMember: MemberTemplate | undefined;
let logMember: MemberTemplate | undefined;

/** Adds a member of a series. `written` is the file offset of the data of a log dataset, null of others. */
type AddMember = (
  structure: Structure,
  group: ObjectNode,
  name: string,
  size: number,
  data: number | FileExtent,
  written: number | null,
) => void;

const addInPage: AddMember = (structure, group, name, size, data, written) => {
  const node = structure.createDataset(group, name, memberOf(size, data));
  if (written !== null) addAttributeMessage(node, ADDRESS_ATTRIBUTE, addressMessage(written));
};

const NONE: readonly never[] = [];

/** Copies an encoded header, and puts sizes and addresses into it: commits add members all the time. */
const addPrepared: AddMember = (structure, group, name, size, data, written) => {
  if (written === null) plainMember ??= new MemberTemplate(structure, false);
  else logMember ??= new MemberTemplate(structure, true);
  const template = (written === null ? plainMember : logMember) as MemberTemplate;
  const bytes = template.header.copy();
  putAddress(bytes, template.space, size);
  putAddress(bytes, template.layout + 8, size);
  const extent = typeof data === 'number' ? null : data;
  if (typeof data === 'number') putAddress(bytes, template.layout, data);
  if (written !== null) putAddress(bytes, template.address, written);
  const header = { bytes, owned: true, targets: NONE, heap: NONE, extent, addressAt: template.layout, planned: false };
  createPrepared(structure, group, name, header, (node) => {
    structure.addDataset(node, memberOf(size, data));
    if (written !== null) addAttributeMessage(node, ADDRESS_ATTRIBUTE, addressMessage(written));
  });
};

export const addMember: AddMember = import.meta.page ? addInPage : addPrepared;

/** Random bytes that tell a file from others. Its subfiles keep them, and so do the datasets of its log. */
export const TOKEN = '_token';
export const TOKEN_SIZE = 16;
const TOKEN_SPACE = simpleSpace([TOKEN_SIZE]);

export type Token = Uint8Array;

export function newToken(): Token {
  return crypto.getRandomValues(new Uint8Array(TOKEN_SIZE));
}

/** Of the root group, or of a dataset of the log. */
export function writeToken(structure: Structure, node: ObjectNode, token: Token): void {
  setPlainAttribute(structure, node, TOKEN, 'uint8', tokenSpace(token), token);
}

export function tokenSpace({ length }: Token): Dataspace {
  return length === TOKEN_SIZE ? TOKEN_SPACE : simpleSpace([length]);
}

/** null in files of the original, and of h5log 0.1 without subfiles. */
export function* readToken(structure: Structure, node = structure.root): Io<Token | null> {
  const value = yield* structure.attribute(node, TOKEN);
  return value instanceof Uint8Array && value.length >= TOKEN_SIZE ? value : null;
}

/** When the file publishes, and what it has published: kind, milliseconds of an interval, sequence (-1: nothing yet), bytes copied. */
export const PUBLISH = '_publish';
const PUBLISH_SPACE = simpleSpace([5]);

/** When other programs see what is committed. */
export type Publish = 'never' | 'close' | 'flush' | 'auto' | { readonly interval: number };

const POLICIES: readonly (Publish & string)[] = ['never', 'close', 'flush', 'auto'];

export interface PublishState {
  readonly policy: Publish;
  /** The commit that other programs see; null: nothing was ever published. */
  readonly sequence: number | null;
  /** Bytes that were ever copied for ordinary layouts. */
  readonly copied: number;
  /** Whether one link leads to each object, and nothing else holds addresses of objects. */
  readonly isTree: boolean;
}

/** What a file remembers of its publishing; null: nothing, as in files of h5log 0.1 and of the original. */
export function* readPublish(structure: Structure): Io<PublishState | null> {
  const value = yield* structure.attribute(structure.root, PUBLISH);
  if (!(value instanceof BigInt64Array) || value.length < 4) return null;
  const [kind, interval, sequence, copied, tree] = Array.from(value, Number) as [
    number,
    number,
    number,
    number,
    number?,
  ];
  const policy = POLICIES[kind] ?? { interval };
  return { policy, sequence: sequence < 0 ? null : sequence, copied, isTree: tree === 1 };
}

export function writePublish(structure: Structure, { policy, sequence, copied, isTree }: PublishState): void {
  const kind = typeof policy === 'string' ? POLICIES.indexOf(policy) : POLICIES.length;
  const bytes = new Uint8Array(40);
  const view = new DataView(bytes.buffer);
  const interval = typeof policy === 'string' ? 0 : policy.interval;
  const numbers = [kind, interval, sequence ?? -1, copied, isTree ? 1 : 0];
  numbers.forEach((number, i) => {
    view.setBigInt64(8 * i, BigInt(number), true);
  });
  setPlainAttribute(structure, structure.root, PUBLISH, 'int64', PUBLISH_SPACE, bytes);
}

/** Which datasets share a log, and the format of tables, in a file that has numbered logs: 2 x int32. */
export const LAYOUT = '_logs';
const LAYOUT_SPACE = simpleSpace([2]);
/** The group of numbered logs. The original looks for a log elsewhere, and would misread these. */
export const LOGS_GROUP = '_LOGS';

/** Which datasets share a log. */
export type LogScope = 'shared' | 'group' | 'dataset';

const SCOPES: readonly LogScope[] = ['shared', 'group', 'dataset'];
const FORMATS: readonly TableOptions['classic'][] = [undefined, 'little', 'big'];

export interface LogLayout {
  readonly scope: LogScope;
  readonly classic: TableOptions['classic'];
}

/** null: the one log that the original knows. */
export function* readLayout(structure: Structure): Io<LogLayout | null> {
  const value = yield* structure.attribute(structure.root, LAYOUT);
  if (value === undefined) return null;
  const [kind, format] = value instanceof Int32Array ? value : [];
  const scope = SCOPES[kind ?? -1];
  if (!scope || format === undefined || format < 0 || format >= FORMATS.length)
    throw formatError(`logs of kind ${kind} with tables of format ${format}`, structure.root.address);
  return { scope, classic: FORMATS[format] };
}

export function writeLayout(structure: Structure, { scope, classic }: LogLayout): void {
  const numbers = Int32Array.of(SCOPES.indexOf(scope), FORMATS.indexOf(classic));
  setPlainAttribute(structure, structure.root, LAYOUT, 'int32', LAYOUT_SPACE, new Uint8Array(numbers.buffer));
}

/** The number of a log: of a group, the one of the datasets made in it; of an anchor, its own. */
export const LOG_NUMBER = '_log';
const NUMBER_SPACE = simpleSpace([1]);

export function* readLogNumber(structure: Structure, node: ObjectNode): Io<number | null> {
  const value = yield* structure.attribute(node, LOG_NUMBER);
  return value instanceof Int32Array && value.length === 1 ? (value[0] as number) : null;
}

export function writeLogNumber(structure: Structure, node: ObjectNode, number: number): void {
  const bytes = new Uint8Array(Int32Array.of(number).buffer);
  setPlainAttribute(structure, node, LOG_NUMBER, 'int32', NUMBER_SPACE, bytes);
}

/** The group of a numbered log, made if it is not there. */
export function numberedGroup(structure: Structure, number: number): ObjectNode {
  const all = logGroup(structure, LOGS_GROUP);
  const link = all.link(String(number));
  const known = link && structure.now(structure.loader.follow(link));
  if (known) return known;
  const made = structure.createGroup(all, String(number));
  untrackOrder(made);
  return made;
}

/** The beginnings of a log in a structure that has none. */
export function beginLog(structure: Structure, counts: LogCounts, token: Token): void {
  writeCounts(structure, counts);
  writeToken(structure, structure.root, token);
  logGroup(structure, recordsGroup(counts));
}

/** A group of the connector's own in the root, made if it is not there: the original makes it only when it is needed. */
export function logGroup(structure: Structure, name: string): ObjectNode {
  const known = knownGroup(structure, name);
  if (known) return known;
  const made = structure.createGroup(structure.root, name);
  untrackOrder(made);
  return made;
}

/** The same, if it is there. */
export function knownGroup(structure: Structure, name: string): ObjectNode | undefined {
  const link = structure.root.link(name);
  return link?.node ?? (link && structure.now(structure.loader.follow(link))) ?? undefined;
}

/**
 * Gives members of a series whose numbers are not counted yet another name. The original leaves such when it ends without closing
 * the file: what is in them was never committed, but is nobody's to throw away either.
 */
export function setAside(structure: Structure, group: ObjectNode, prefix: string, count: number): void {
  const uncounted: string[] = [];
  for (const name of group.links.keys()) if (numberIn(name, prefix) >= count) uncounted.push(name);
  for (const name of uncounted) {
    let aside = `_lost${name}`;
    while (group.links.has(aside)) aside = `_lost${aside}`;
    structure.moveLink(group, name, group, aside);
  }
}

/** The number of a member of a series; -1 for another name. Every flush looks at all members: without an object for each. */
function numberIn(name: string, prefix: string): number {
  if (name.length === prefix.length || !name.startsWith(prefix)) return -1;
  let number = 0;
  for (let i = prefix.length; i < name.length; i++) {
    const digit = name.charCodeAt(i) - 48;
    if (digit < 0 || digit > 9) return -1;
    number = 10 * number + digit;
  }
  return number;
}
