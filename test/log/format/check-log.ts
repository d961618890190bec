import { readFileSync } from 'node:fs';
import { inflateSync } from 'node:zlib';
import { pythonSync } from '../../oracles.ts';
import { position, product, range } from '../../space/model.ts';

/*
 * The rules of a log file (format-original.md sections 1 to 3 and 14), checked without any of the library's code: h5py tells the
 * HDF5 objects, everything else is taken from the bytes here.
 */

interface SeenAttribute {
  readonly name: string;
  readonly kind: 'i32' | 'i64' | 'none';
  readonly shape: readonly number[] | null;
  readonly value: readonly number[] | null;
}

interface SeenDataset {
  readonly path: string;
  readonly address: number;
  readonly space: 'null' | 'scalar' | 'simple';
  readonly shape: readonly number[];
  readonly maxShape: readonly (number | null)[];
  readonly bits: boolean;
  readonly size: number;
  readonly contiguous: boolean;
  readonly early: boolean;
  readonly filters: number;
  readonly offset: number | null;
  readonly fill: string | null;
  readonly attributes: readonly SeenAttribute[];
  readonly sum?: number;
}

export interface SeenFile {
  readonly root: readonly SeenAttribute[];
  readonly datasets: readonly SeenDataset[];
  readonly links: readonly string[];
  readonly log: readonly string[];
}

const SCRIPT = readFileSync(new URL('describe-log.py', import.meta.url), 'utf8');

/** What h5py sees of files, all in one process. */
export function seenByH5py(paths: readonly string[]): SeenFile[] {
  return pythonSync(SCRIPT, paths)
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as SeenFile);
}

/** What a dataset is for the log. */
export interface SeenAnchor {
  readonly path: string;
  readonly id: number;
  readonly dims: readonly number[];
  readonly records: boolean;
  readonly size: number;
  readonly filtered: boolean;
  readonly fill: string | null;
}

export interface Entry {
  readonly table: number;
  readonly at: number;
  readonly id: number;
  readonly flags: number;
  readonly offset: number;
  readonly size: number;
  readonly blocks: readonly { readonly start: readonly number[]; readonly count: readonly number[] }[];
}

export interface Checked {
  readonly counts: readonly number[];
  readonly anchors: ReadonlyMap<number, SeenAnchor>;
  readonly entries: readonly Entry[];
  readonly flags: ReadonlyMap<number, number>;
  /** Of all tables together. */
  readonly sections: number;
}

const [MUL, ENC, ZIP, REF, REC] = [0x01, 0x04, 0x08, 0x10, 0x20];

function must(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(`log file: ${what}`);
}

/**
 * Checks every rule; throws at the first that is broken. In a file that the original began, `since` is where its part ends: tables
 * before that are the original's own affair.
 */
export function checkLogFile(bytes: Uint8Array, seen: SeenFile, since = 0): Checked {
  const counts = checkCounts(seen, since > 0 ? 0x001 : 0);
  const logs = checkSeries(seen, '_ld_', counts[1] as number, bytes);
  const tables = checkSeries(seen, '_md_', counts[2] as number, bytes);
  const anchors = checkAnchors(seen, counts[0] as number);
  const entries: Entry[] = [];
  let sections = 0;
  tables.forEach((table, k) => {
    if (table.offset < since) return;
    const parser = new TableParser(bytes.subarray(table.offset, table.offset + table.size), k, anchors, counts);
    sections += parser.sections;
    entries.push(...parser.parse());
  });
  checkOrder(entries);
  checkData(entries, anchors, logs, since);
  const flags = new Map<number, number>();
  for (const entry of entries) flags.set(entry.flags, (flags.get(entry.flags) ?? 0) + 1);
  return { counts, anchors, entries, flags, sections };
}

function checkCounts(seen: SeenFile, allowed: number): readonly number[] {
  const counts = seen.root.find(({ name }) => name === '_int_att');
  must(counts?.kind === 'i32' && counts.shape?.length === 1 && counts.shape[0] === 5, '_int_att is not 5 x i32');
  const value = counts.value as readonly number[];
  must(
    ((value[3] as number) & (0x001 | 0x010 | 0x100 | 0x200 | 0x400) & ~allowed) === 0,
    `configuration 0x${value[3]?.toString(16)}`,
  );
  must(value[4] === 1, `${value[4]} subfiles`);
  must(seen.links.includes('_LOG'), 'there is no _LOG');
  for (const link of seen.links) must(link === '_LOG' || !/^_(?!_)/.test(link), `link ${link} in the root`);
  return value;
}

function checkSeries(
  seen: SeenFile,
  prefix: string,
  count: number,
  bytes: Uint8Array,
): { offset: number; size: number }[] {
  const names = seen.log.filter((name) => name.startsWith(prefix));
  must(names.length === count, `${names.length} datasets ${prefix}, _int_att says ${count}`);
  return range(0, count).map((k) => {
    const found = seen.datasets.find(({ path }) => path === `/_LOG/${prefix}${k}`);
    must(found !== undefined, `there is no ${prefix}${k}`);
    const { space, shape, maxShape, offset } = found;
    must(found.bits && space === 'simple' && shape.length === 1, `${prefix}${k} is not one-dimensional B8LE`);
    must(shape[0] === maxShape[0] && (shape[0] as number) > 0, `${prefix}${k} is empty or can grow`);
    must(found.contiguous && found.early && found.filters === 0 && offset !== null, `layout of ${prefix}${k}`);
    const sum = bytes.subarray(offset, offset + (shape[0] as number)).reduce((a, b) => a + b, 0);
    must(sum === found.sum, `h5py reads other bytes from ${prefix}${k}`);
    return { offset, size: shape[0] as number };
  });
}

function checkAnchors(seen: SeenFile, next: number): Map<number, SeenAnchor> {
  const anchors = new Map<number, SeenAnchor>();
  for (const { path, address, space, filters, contiguous, offset, size, attributes, fill } of seen.datasets) {
    if (path.startsWith('/_LOG/')) continue;
    const get = (name: string): SeenAttribute | undefined => attributes.find((attribute) => attribute.name === name);
    // A published dataset has a layout, which the original never looks at.
    if (get('_view') === undefined)
      must(space === 'null' && filters === 0 && contiguous && offset === null, `${path} is no anchor`);
    else must(space !== 'null', `${path} is published without a dataspace`);
    const [dims, max, id] = [get('_dims'), get('_mdims'), get('_ID')];
    must(dims?.kind === 'i64' && dims.shape?.length === 1, `_dims of ${path}`);
    must(max?.kind === 'i64' && max.shape?.length === 1 && max.shape[0] === dims.shape[0], `_mdims of ${path}`);
    must(id?.kind === 'i32' && id.shape?.length === 1 && id.shape[0] === 1, `_ID of ${path}`);
    // Datasets of files that others made do not say where they are.
    const own = get('_at');
    must(own === undefined || (own.kind === 'i64' && own.value?.[0] === address), `_at of ${path}`);
    const number = id.value?.[0] as number;
    must(number >= 0 && number < next, `_ID ${number} of ${path}, next is ${next}`);
    const sizes = dims.value as readonly number[];
    (max.value as readonly number[]).forEach((n, d) => {
      must(n === -1 || n >= (sizes[d] as number), `_mdims of ${path}`);
    });
    const filtered = get('_filters') !== undefined;
    anchors.set(number, { path, id: number, dims: sizes, records: max.value?.[0] === -1, size, filtered, fill });
  }
  return anchors;
}

class TableParser {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #table: number;
  readonly #anchors: ReadonlyMap<number, SeenAnchor>;
  readonly #counts: readonly number[];
  readonly #full = new Map<number, { flags: number; rank: number | null }>();

  constructor(bytes: Uint8Array, table: number, anchors: ReadonlyMap<number, SeenAnchor>, counts: readonly number[]) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#table = table;
    this.#anchors = anchors;
    this.#counts = counts;
  }

  #i64(at: number): number {
    return Number(this.#view.getBigInt64(at, true));
  }

  /** How many ranks wrote the table: each has a section. */
  get sections(): number {
    return this.#i64(0);
  }

  *parse(): Generator<Entry> {
    const { sections } = this;
    must(sections >= 1 && 8 * (sections + 1) <= this.#bytes.length, `table ${this.#table} has ${sections} sections`);
    let at = 8 * (sections + 1);
    for (let k = 1; k <= sections; k++) {
      const end = this.#i64(8 * k);
      must(end >= at && end <= this.#bytes.length, `section ${k} of table ${this.#table} ends at ${end}`);
      // References stay inside a section.
      this.#full.clear();
      while (at < end) {
        const size = this.#view.getInt32(at, true);
        must(size >= 28 && at + size <= end, `entry of ${size} bytes at ${at}`);
        const entry = this.#entry(at, size, end);
        if (entry) yield entry;
        at += size;
      }
    }
    must(at === this.#bytes.length, `the sections of table ${this.#table} end at ${at}`);
  }

  #entry(at: number, size: number, end: number): Entry | undefined {
    const what = `entry at ${at} of table ${this.#table}`;
    const [id, flags] = [this.#view.getInt32(at + 4, true), this.#view.getInt32(at + 8, true)];
    must(id >= 0 && id < (this.#counts[0] as number), `${what}: dataset ${id}`);
    must((flags & ~(MUL | ENC | ZIP | REF | REC)) === 0, `${what}: flags 0x${flags.toString(16)}`);
    const anchor = this.#anchors.get(id);
    const head = { table: this.#table, at, id, flags, offset: this.#i64(at + 12), size: this.#i64(at + 20) };
    if ((flags & REF) === 0) {
      this.#full.set(at, { flags, rank: anchor ? anchor.dims.length : null });
      const last = at + size === end;
      must(!(flags & ZIP && flags & REC && last), `${what}: a compressed record is the last`);
      return anchor && { ...head, blocks: this.#blocks(at, size, flags, anchor, -1, what) };
    }
    must(((this.#counts[3] as number) & 0x008) !== 0, `${what}: a reference without bit 0x008`);
    must(size === (flags & REC ? 44 : 36), `${what}: a reference of ${size} bytes`);
    must((flags & ZIP) === 0, `${what}: a compressed reference`);
    const target = at + this.#i64(at + size - 8);
    const holder = this.#full.get(target);
    must(holder !== undefined && target < at, `${what}: refers to ${target}, which is no full entry before it`);
    must((holder.flags & REC) === (flags & REC), `${what}: a reference from ${flags} to ${holder.flags}`);
    must((holder.flags & (MUL | ENC)) === (flags & (MUL | ENC)), `${what}: leftover flags ${flags} / ${holder.flags}`);
    if (!anchor) return undefined;
    must(holder.rank !== null, `${what}: a reference to an entry of a dataset that is gone`);
    must(
      holder.rank === anchor.dims.length,
      `${what}: a reference to ${holder.rank} dimensions from ${anchor.dims.length}`,
    );
    const record = flags & REC ? this.#i64(at + 28) : -1;
    const targetSize = this.#view.getInt32(target, true);
    return { ...head, blocks: this.#blocks(target, targetSize, holder.flags, anchor, record, what) };
  }

  #blocks(at: number, size: number, flags: number, { dims }: SeenAnchor, own: number, what: string): Entry['blocks'] {
    const isRecord = (flags & REC) !== 0;
    const rank = dims.length;
    must(!isRecord || rank > 0, `${what}: a record of a scalar`);
    const inner = rank - (isRecord ? 1 : 0);
    const record = own >= 0 ? own : isRecord ? this.#i64(at + 28) : -1;
    let from = at + 28 + (isRecord ? 8 : 0);
    const n = flags & MUL ? this.#view.getInt32(from, true) : 1;
    if (flags & MUL) from += 4;
    must(n >= 1, `${what}: ${n} blocks`);
    let body: Uint8Array = this.#bytes.subarray(from, at + size);
    if (flags & ZIP) body = inflateSync(body);
    const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
    const number = (k: number): number => Number(view.getBigInt64(k * 8, true));
    const lists = flags & ENC ? this.#decoded(number, n, inner, body.length, what) : undefined;
    if (!lists) must(body.length === n * inner * 16, `${what}: ${body.length} bytes for ${n} blocks of ${inner}`);
    return range(0, n).map((i) => {
      const start = lists ? lists.starts[i]! : range(0, inner).map((d) => number(i * inner + d));
      const count = lists ? lists.counts[i]! : range(0, inner).map((d) => number((n + i) * inner + d));
      must(start.every((x) => x >= 0) && count.every((x) => x >= 1), `${what}: block ${start} ${count}`);
      return isRecord ? { start: [record, ...start], count: [1, ...count] } : { start, count };
    });
  }

  /** As the original decodes: by division. With steps from sizes plus one that is right for counts as well. */
  #decoded(
    number: (k: number) => number,
    n: number,
    inner: number,
    length: number,
    what: string,
  ): { starts: number[][]; counts: number[][] } {
    must(n > 1 && inner > 1, `${what}: ${n} encoded blocks of ${inner} dimensions`);
    must(length === (inner - 1) * 8 + n * 16, `${what}: ${length} bytes of encoded blocks`);
    const steps = [...range(0, inner - 1).map(number), 1];
    for (let d = 1; d < inner; d++)
      must((steps[d - 1] as number) % (steps[d] as number) === 0, `${what}: steps ${steps}`);
    const divide = (value: number): number[] => {
      let left = value;
      return steps.map((step) => {
        const digit = Math.floor(left / step);
        left -= digit * step;
        return digit;
      });
    };
    const starts = range(0, n).map((i) => divide(number(inner - 1 + i)));
    const counts = range(0, n).map((i) => divide(number(inner - 1 + n + i)));
    starts.forEach((start, i) => {
      for (let d = 1; d < inner; d++) {
        const end = (start[d] as number) + (counts[i]![d] as number);
        must(
          end < (steps[d - 1] as number) / (steps[d] as number),
          `${what}: block ${i} reaches ${end}, the steps are ${steps}`,
        );
      }
    });
    return { starts, counts };
  }
}

/** Rule 6: entries in ascending file offset. Rule 7: no two share bytes. */
function checkOrder(entries: readonly Entry[]): void {
  for (let i = 1; i < entries.length; i++) {
    const [a, b] = [entries[i - 1] as Entry, entries[i] as Entry];
    must(
      b.offset >= a.offset + a.size,
      `entry at ${b.at} of table ${b.table} has its data at ${b.offset}, the one before ends at ${a.offset + a.size}`,
    );
  }
}

function checkData(
  entries: readonly Entry[],
  anchors: ReadonlyMap<number, SeenAnchor>,
  logs: readonly { offset: number; size: number }[],
  since: number,
): void {
  for (const { id, table, at, offset, size, blocks } of entries) {
    const anchor = anchors.get(id) as SeenAnchor;
    const elements = blocks.reduce((sum, { count }) => sum + count.reduce((a, b) => a * b, 1), 0);
    // What the original deflated has another size, in a table that we wrote anew as well.
    if (!anchor.filtered && offset >= since)
      must(size === elements * anchor.size, `entry at ${at} of table ${table}: ${size} bytes, ${elements} elements`);
    if (anchor.filtered)
      must(blocks.length === 1, `entry at ${at} of table ${table}: filtered, ${blocks.length} blocks`);
    must(
      logs.some((log) => offset >= log.offset && offset + size <= log.offset + log.size),
      `data at ${offset} lies in no log`,
    );
  }
}

/** The contents of an unfiltered dataset as the original reads it: fill, then every block in the order of file offsets. */
export function readAsOriginal(bytes: Uint8Array, { anchors, entries }: Checked, id: number): Buffer | undefined {
  const anchor = anchors.get(id);
  if (!anchor || anchor.filtered || anchor.fill === null) return undefined;
  const { dims, size } = anchor;
  const total = dims.reduce((a, b) => a * b, 1);
  const fill = anchor.fill === '' ? new Uint8Array(size) : Uint8Array.from(Buffer.from(anchor.fill, 'hex'));
  if (fill.length !== size) return undefined;
  const out = Buffer.alloc(total * size);
  for (let i = 0; i < total; i++) out.set(fill, i * size);
  for (const entry of entries) {
    if (entry.id !== id) continue;
    let at = entry.offset;
    for (const { start, count } of entry.blocks) {
      for (const point of product(start.map((from, d) => range(from, count[d] as number)))) {
        if (point.every((x, d) => x < (dims[d] as number)))
          out.set(bytes.subarray(at, at + size), position(point, dims) * size);
        at += size;
      }
    }
  }
  return out;
}
