// Writing the groups of the log, their members, and what the root says of log and publishing: see log-group.ts.

import { T } from '../../dtype/construct.ts';
import { putAddress } from '../../hdf5/format/byte-writer.ts';
import { type FileExtent, ObjectNode } from '../../hdf5/graph/object-node.ts';
import { contiguous, type NewDataset } from '../../hdf5/layouts/new-dataset.ts';
import { type Dataspace, simpleSpace } from '../../hdf5/messages/dataspace.ts';
import { encodeAttribute } from '../../hdf5/messages/encode.ts';
import * as MESSAGE from '../../hdf5/messages/message-types.ts';
import { addAttributeMessage, setPlainAttribute } from '../../hdf5/write/attributes.ts';
import { createPrepared, HeaderTemplate } from '../../hdf5/write/prepared.ts';
import { type Structure, untrackOrder } from '../../hdf5/write/structure.ts';
import {
  ADDRESS_ATTRIBUTE,
  COUNTS_ATTRIBUTE,
  FORMATS,
  knownGroup,
  LAYOUT,
  LOG_NUMBER,
  LOGS_GROUP,
  type LogCounts,
  type LogLayout,
  POLICIES,
  PUBLISH,
  type PublishState,
  recordsGroup,
  SCOPES,
  TOKEN,
  TOKEN_SIZE,
  type Token,
} from './log-group.ts';

const COUNTS_SPACE = simpleSpace([5]);

const BYTES = T.bitfield(1);

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

/** Encoded once: every flush writes one, and they differ in eight bytes. */
const ADDRESS_MESSAGE = encodeAttribute(ADDRESS_ATTRIBUTE, 'int64', simpleSpace([1]), new Uint8Array(8));

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
  const addressAt = template.layout;
  const header = { bytes, owned: true, targets: NONE, heap: NONE, extent, addressAt, ownAddressAt: 0, planned: false };
  createPrepared(structure, group, name, header, (node) => {
    structure.addDataset(node, memberOf(size, data));
    if (written !== null) addAttributeMessage(node, ADDRESS_ATTRIBUTE, addressMessage(written));
  });
};

export const addMember: AddMember = import.meta.page ? addInPage : addPrepared;

const TOKEN_SPACE = simpleSpace([TOKEN_SIZE]);

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

const PUBLISH_SPACE = simpleSpace([5]);

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

const LAYOUT_SPACE = simpleSpace([2]);

export function writeLayout(structure: Structure, { scope, classic }: LogLayout): void {
  const numbers = Int32Array.of(SCOPES.indexOf(scope), FORMATS.indexOf(classic));
  setPlainAttribute(structure, structure.root, LAYOUT, 'int32', LAYOUT_SPACE, new Uint8Array(numbers.buffer));
}

const NUMBER_SPACE = simpleSpace([1]);

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
