// The mappings of virtual datasets, which are stored in the global heap (HDF5 file format specification, III.F).

import { lookup3 } from '../../base/checksum.ts';
import { ByteWriter } from '../format/byte-writer.ts';
import { type Cursor, checkSum } from '../format/cursor.ts';
import { parseSelection, type StoredSelection } from '../messages/selection.ts';

/** A box, or if repeated, in dimension d `times[d]` boxes, one every `stride[d]` elements. */
interface Hyperslab {
  readonly start: readonly number[];
  readonly count: readonly number[];
  readonly repeated?: { readonly times: readonly number[]; readonly stride: readonly number[] };
}

/** A part of a virtual dataset and the part of a source dataset that it shows. The file "." is the file itself. */
export interface Mapping {
  readonly file: string;
  readonly dataset: string;
  readonly source: Hyperslab;
  readonly target: Hyperslab;
}

/** A mapping as a file stores it: any selections, and names that may hold the number of a block. */
export interface StoredMapping {
  readonly file: string;
  readonly dataset: string;
  readonly source: StoredSelection;
  readonly target: StoredSelection;
}

/** What a mapping of version 1 says of its names, which earlier mappings may have: flags of the format, which libhdf5 2.0 writes. */
const SHARED_FILE = 1;
const SHARED_DATASET = 2;
const SAME_FILE = 4;

/** Decodes the heap object with the mappings of a virtual dataset. */
export function parseMappings(cursor: Cursor, lengthSize: number): StoredMapping[] {
  if (cursor.left < 4) cursor.fail(`mappings in ${cursor.left} bytes`);
  checkSum(cursor, cursor.end - 4, cursor.base, ' of the mappings');
  cursor.end -= 4;
  cursor.at = 0;
  const version = cursor.u8();
  if (version > 1) cursor.fail(`version ${version} of the mappings`);
  const count = cursor.uint(lengthSize);
  const mappings: StoredMapping[] = [];
  for (let i = 0; i < count; i++) {
    const flags = version === 1 ? cursor.u8() : 0;
    if (flags > 7) cursor.fail(`a mapping with flags ${flags}`);
    const earlier = (): StoredMapping => mappings[cursor.uint(lengthSize)] ?? cursor.fail('a name of a later mapping');
    let file = '.';
    if ((flags & SAME_FILE) === 0)
      file = flags & SHARED_FILE ? earlier().file : cursor.cstring('name of a source file');
    const dataset = flags & SHARED_DATASET ? earlier().dataset : cursor.cstring('name of a source dataset');
    const source = parseSelection(cursor);
    mappings.push({ file, dataset, source, target: parseSelection(cursor) });
  }
  return mappings;
}

/** Encodes the heap object with the mappings of a virtual dataset. */
export function encodeMappings(mappings: readonly Mapping[]): Uint8Array {
  const out = new ByteWriter(64 + mappings.length * 96).u8(0).u64(mappings.length);
  for (const { file, dataset, source, target } of mappings) {
    out.text(file).u8(0).text(dataset).u8(0);
    putHyperslab(out, source);
    putHyperslab(out, target);
  }
  return out.u32(lookup3(out.done())).done();
}

/** Writes a hyperslab selection: a box as version 1 if its corners fit into 32 bits, everything else as version 2. */
function putHyperslab(out: ByteWriter, { start, count, repeated }: Hyperslab): void {
  const rank = start.length;
  const ends = start.map((s, d) => s + (count[d] as number) - 1);
  if (!repeated && ends.every((end) => end <= 0xffffffff)) {
    out
      .u32(2)
      .u32(1)
      .u32(0)
      .u32(8 + rank * 8)
      .u32(rank)
      .u32(1);
    for (const s of start) out.u32(s);
    for (const end of ends) out.u32(end);
    return;
  }
  out
    .u32(2)
    .u32(2)
    .u8(1)
    .u32(4 + rank * 32)
    .u32(rank);
  start.forEach((s, d) => {
    out
      .u64(s)
      .u64(repeated?.stride[d] ?? 1)
      .u64(repeated?.times[d] ?? 1)
      .u64(count[d] as number);
  });
}
