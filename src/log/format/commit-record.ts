import { lookup3 } from '../../base/checksum.ts';
import { formatError } from '../../base/errors.ts';
import { ByteWriter } from '../../hdf5/format/byte-writer.ts';
import { Cursor } from '../../hdf5/format/cursor.ts';

/** Of records of files that h5log 0.1 reads, and of those whose elements point elsewhere: into heaps, or to objects. */
export const PLAIN_VERSION = 1;
export const POINTER_VERSION = 2;
const VERSION_AT = 7;
/** "H5LCMT" and 0; the version of the record follows. */
export const MAGIC = Uint8Array.of(0x48, 0x35, 0x4c, 0x43, 0x4d, 0x54, 0x00);
const FIXED = 8 + 8 * 6 + 4 * 3 + 8 + 4;
const PER_RANK = 20;
const SECTIONS_SUMMED = 0x100;
const HEAPS_FIRST = 0x200;

/** Kind of the checksums: 0 none, 1 the first 8 bytes of an AES-GMAC, 2 the 64-bit sum of base/checksum.ts. */
export type ChecksumKind = 0 | 1 | 2;

/**
 * What one rank wrote: where its data ends (file offset) and the checksum of it. In a file whose data is in subfiles: which state
 * of a subfile counts, by its end and the address of its root (see {@link subfileState}).
 */
export interface RankPart {
  /** The number of the rank, or of the subfile. */
  readonly rank: number;
  readonly end: number;
  readonly checksum: Uint8Array;
}

/** What a commit consists of. Numbers are file offsets except `root`, an address. */
export interface CommitRecord {
  readonly version: number;
  readonly sequence: number;
  /** Milliseconds since 1970. */
  readonly time: number;
  readonly requests: number;
  readonly root: number;
  /** What the commit appended: [start, end). Data comes first. */
  readonly start: number;
  readonly end: number;
  readonly kind: ChecksumKind;
  /** The table was so large that each rank wrote its own section, which is part of the rank's checksum and not of the rest. */
  readonly sectionsSummed: boolean;
  /** Several ranks had heaps: before the data of all ranks are their heaps, each a part of its own in {@link ranks}. */
  readonly heapsFirst: boolean;
  /** Ranks that had the file open. */
  readonly world: number;
  readonly ranks: readonly RankPart[];
  /** Checksum of everything appended but the data and this record itself. */
  readonly rest: Uint8Array;
}

/** Bytes of the record of a commit by so many ranks. */
export function recordSize(ranks: number): number {
  return FIXED + ranks * PER_RANK;
}

export function encodeRecord(record: CommitRecord): Uint8Array {
  const out = new ByteWriter(recordSize(record.ranks.length)).put(MAGIC).u8(record.version);
  out.u64(record.sequence).u64(record.time).u64(record.requests).u64(record.root).u64(record.start).u64(record.end);
  out
    .u32(record.kind | (record.sectionsSummed ? SECTIONS_SUMMED : 0) | (record.heapsFirst ? HEAPS_FIRST : 0))
    .u32(record.world)
    .u32(record.ranks.length);
  for (const { rank, end, checksum } of record.ranks) out.u32(rank).u64(end).put(checksum);
  out.put(record.rest);
  return out.u32(lookup3(out.done())).done();
}

/** Records that were read once; they never change. */
const parsed = new WeakMap<object, readonly CommitRecord[]>();

/** The records in a member of their series; none if its bytes were not read. */
export function recordsIn(member: {
  readonly bytes: Uint8Array | null;
  readonly address: number;
}): readonly CommitRecord[] {
  const known = parsed.get(member);
  if (known) return known;
  const records = member.bytes ? parseRecords(member.bytes, member.address) : [];
  parsed.set(member, records);
  return records;
}

/** Reads records that lie one after the other; `base` is the file offset of the first. */
export function parseRecords(bytes: Uint8Array, base: number): CommitRecord[] {
  const records: CommitRecord[] = [];
  for (let at = 0; at < bytes.length; ) {
    const cursor = new Cursor(bytes, base, at);
    const magic = cursor.take(8, 'commit record');
    const isRecord = MAGIC.every((byte, i) => magic[i] === byte);
    if (!isRecord) throw formatError('commit record without its magic', base + at);
    const version = magic[VERSION_AT] as number;
    if (version < PLAIN_VERSION || version > POINTER_VERSION)
      throw formatError(
        `commit record of version ${version}: this h5log knows versions 1 to ${POINTER_VERSION}`,
        base + at,
      );
    const [sequence, time, requests, root, start, end] = [
      cursor.u64(),
      cursor.u64(),
      cursor.u64(),
      cursor.u64(),
      cursor.u64(),
      cursor.u64(),
    ];
    const flags = cursor.u32();
    const kind = flags & ~(SECTIONS_SUMMED | (version > PLAIN_VERSION ? HEAPS_FIRST : 0));
    if (kind > 2) cursor.fail(`checksum of kind ${kind} is not known`);
    const world = cursor.u32();
    const count = cursor.u32();
    if (count * PER_RANK > cursor.left) cursor.fail(`commit record of ${count} ranks`);
    const ranks: RankPart[] = [];
    for (let i = 0; i < count; i++)
      ranks.push({ rank: cursor.u32(), end: cursor.u64(), checksum: cursor.take(8).slice() });
    const rest = cursor.take(8).slice();
    const sum = lookup3(bytes.subarray(at, cursor.at));
    if (cursor.u32() !== sum) throw formatError('checksum of a commit record is wrong', base + at);
    const heapsFirst = (flags & HEAPS_FIRST) !== 0;
    if (heapsFirst && count % 2 !== 0) throw formatError(`commit record of ${count} heaps and ranks`, base + at);
    records.push({
      version,
      sequence,
      time,
      requests,
      root,
      start,
      end,
      kind: kind as ChecksumKind,
      sectionsSummed: (flags & SECTIONS_SUMMED) !== 0,
      heapsFirst,
      world,
      ranks,
      rest,
    });
    at = cursor.at;
  }
  return records;
}

/** A state of a subfile: the address of its root group and where it ends. */
export interface SubfileState {
  readonly root: number;
  readonly end: number;
}

export function statePart({ root, end }: SubfileState, subfile: number): RankPart {
  return { rank: subfile, end, checksum: new ByteWriter(8).u64(root).done() };
}

export function subfileState({ end, checksum }: RankPart): SubfileState {
  return { end, root: new Cursor(checksum, 0, 0).u64() };
}
