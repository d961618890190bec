import { checksummer, sameBytes } from '#platform';
import { gmac, mixedSum } from '../../base/checksum.ts';
import { Cursor } from '../../hdf5/format/cursor.ts';
import { SUPERBLOCK_SIZE } from '../../hdf5/format/superblock.ts';
import { type ChecksumKind, type CommitRecord, encodeRecord } from '../../log/format/commit-record.ts';
import type { CheckedFile } from './checked-file.ts';

/** File offsets. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

/** Committed bytes that are not what they were. Where exactly in the range, nobody can say. */
export interface Damage extends Range {
  readonly sequence: number;
  /** `record`: in the dataset of records of that commit, and in nothing else. */
  readonly in: 'data' | 'structure' | 'record';
  readonly what: string;
}

/** Looks at every byte that a commit appended. `history` are the records that are known, oldest first. */
export class CommitSums {
  readonly #file: CheckedFile;
  readonly #history: readonly CommitRecord[];
  readonly #isMain: boolean;
  /** Where the dataset of records of a commit lies, as its own structure says. */
  readonly #place: (record: CommitRecord) => Promise<Range | null>;
  /** Told of bytes that were dealt with. */
  readonly #done: (bytes: number) => void;

  constructor(
    file: CheckedFile,
    history: readonly CommitRecord[],
    options: {
      /** The file itself of one whose data is in subfiles: its records name those instead of ranks. */
      readonly isMain: boolean;
      readonly place: (record: CommitRecord) => Promise<Range | null>;
      readonly done: (bytes: number) => void;
    },
  ) {
    this.#file = file;
    this.#history = history;
    this.#isMain = options.isMain;
    this.#place = options.place;
    this.#done = options.done;
  }

  async check(index: number): Promise<Damage[]> {
    const record = this.#history[index] as CommitRecord;
    const { sequence, start, end, kind } = record;
    const damaged = (range: Range, where: Damage['in'], what: string): Damage => ({
      start: range.start,
      end: range.end,
      sequence,
      in: where,
      what,
    });
    const ranks = this.#isMain ? [] : record.ranks;
    const nonsense = this.#nonsense(record, ranks);
    if (nonsense) return [damaged(record, 'structure', `the record of commit ${sequence} ${nonsense}`)];
    if (kind === 0) {
      this.#done(end - start);
      return [];
    }
    const found: Damage[] = [];
    const dataEnd = ranks.at(-1)?.end ?? start;
    // Heaps of several ranks come before the data of all of them.
    const heaps = record.heapsFirst ? ranks.length / 2 : 0;
    const table = record.sectionsSummed ? await this.#sections(dataEnd, ranks.length - heaps, end) : null;
    if (record.sectionsSummed && !table)
      return [
        damaged(record, 'structure', `the table of commit ${sequence} has another number of sections than ranks`),
      ];
    let from = start;
    for (const [i, { rank, end: to, checksum }] of ranks.entries()) {
      const section = table?.sections[i - heaps];
      const sum = await this.#sum(kind, section ? [{ start: from, end: to }, section] : [{ start: from, end: to }]);
      if (!sameBytes(sum, checksum)) {
        const what = `data of rank ${rank} in commit ${sequence}, bytes ${from} to ${to}: the checksum is wrong`;
        found.push(damaged({ start: from, end: to }, 'data', what));
        // What the elements of a rank point to is as good as the elements.
        if (i < heaps)
          found.push(
            damaged({ start: ranks[i + heaps - 1]?.end ?? to, end: ranks[i + heaps]?.end ?? to }, 'data', what),
          );
        if (section) found.push(damaged(section, 'structure', `${what} (or of its section of the table)`));
      }
      from = to;
    }
    return [...found, ...(await this.#rest(index, dataEnd, table))];
  }

  /** Why a record cannot be right although its own checksum is. */
  #nonsense({ start, end, root }: CommitRecord, ranks: CommitRecord['ranks']): string | null {
    const { base, end: last } = this.#file;
    if (!(start >= base + SUPERBLOCK_SIZE && start <= end && end <= last))
      return `says that it appended bytes ${start} to ${end} of a file that ends at ${last}`;
    if (!(root + base >= base + SUPERBLOCK_SIZE && root + base < end)) return `has its root at ${root}`;
    let from = start;
    for (const rank of ranks) {
      if (rank.end < from || rank.end > end) return `has data of rank ${rank.rank} end at ${rank.end}`;
      from = rank.end;
    }
    return null;
  }

  /** The table behind the data, whose sections count as data of their ranks. */
  async #sections(
    at: number,
    ranks: number,
    end: number,
  ): Promise<{ header: Range; end: number; sections: Range[] } | null> {
    const size = 8 * (ranks + 1);
    if (at + size > end) return null;
    const cursor = new Cursor(await this.#file.get(at, size), at);
    try {
      if (cursor.u64() !== ranks) return null;
      const sections: Range[] = [];
      let from = size;
      for (let i = 0; i < ranks; i++) {
        const to = cursor.u64();
        if (to < from || at + to > end) return null;
        sections.push({ start: at + from, end: at + to });
        from = to;
      }
      return { header: { start: at, end: at + size }, end: at + from, sections };
    } catch {
      return null;
    }
  }

  /** Everything but the data: it has one sum, which leaves the dataset of records out. Those are compared with the ones that are known. */
  async #rest(index: number, dataEnd: number, table: { header: Range; end: number } | null): Promise<Damage[]> {
    const record = this.#history[index] as CommitRecord;
    const { sequence, end } = record;
    const from = table?.end ?? dataEnd;
    const around = (records: Range): Range[] => [
      ...(table ? [table.header] : []),
      { start: from, end: records.start },
      { start: records.end, end },
    ];
    const known = await this.#records(index, from);
    if (known && sameBytes(await this.#sum(record.kind, around(known)), record.rest)) {
      this.#done(known.end - known.start);
      return [];
    }
    const damage = (range: Range, where: Damage['in'], what: string): Damage => ({
      ...range,
      sequence,
      in: where,
      what,
    });
    // The records in it may be what is damaged: then they cannot be found by what they should be.
    const placed = await this.#place(record);
    const inside = placed && placed.start >= from && placed.end <= end ? placed : null;
    if (inside && (inside.start !== known?.start || inside.end !== known.end)) {
      if (sameBytes(await this.#sum(record.kind, around(inside)), record.rest)) {
        const what = `commit records of commit ${sequence}, bytes ${inside.start} to ${inside.end}: they differ from the merged record`;
        return [damage(inside, 'record', what)];
      }
    }
    const what = `structure of commit ${sequence}, bytes ${from} to ${end}: the checksum is wrong`;
    return [damage({ start: table ? table.header.start : from, end }, 'structure', what)];
  }

  /** Where the record of a commit lies in what it appended, with those that it was merged with before it. */
  async #records(index: number, from: number): Promise<Range | null> {
    const record = this.#history[index] as CommitRecord;
    const own = encodeRecord(record);
    let at = -1;
    await this.#file.find(own, from, record.end, (place) => {
      at = place;
      return true;
    });
    if (at < 0) return null;
    let start = at;
    for (let i = index - 1; i >= 0; i--) {
      const before = encodeRecord(this.#history[i] as CommitRecord);
      if (start - before.length < from) break;
      if (!sameBytes(await this.#file.get(start - before.length, before.length), before)) break;
      start -= before.length;
    }
    return { start, end: at + own.length };
  }

  async #sum(kind: ChecksumKind, ranges: readonly Range[]): Promise<Uint8Array> {
    const sum = summer(kind);
    for (const { start, end } of ranges) {
      await this.#file.each(start, end, (bytes) => {
        sum.update(bytes);
        this.#done(bytes.length);
      });
    }
    return sum.digest();
  }
}

function summer(kind: ChecksumKind): { update(bytes: Uint8Array): void; digest(): Uint8Array } {
  if (kind === 2) return mixedSum();
  const own = checksummer();
  // A page makes the other kind, and checks this one without AES.
  return own.kind === 1 ? own : gmac();
}
