import { createCipheriv } from 'node:crypto';
import { File } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { sessionOf } from '../../../src/api/handle.ts';
import { type CommitRecord, parseRecords } from '../../../src/log/format/commit-record.ts';

function sumOf(...parts: readonly Uint8Array[]): string {
  const cipher = createCipheriv('aes-128-gcm', new Uint8Array(16), new Uint8Array(12));
  cipher.setAAD(Buffer.concat(parts));
  cipher.final();
  return cipher.getAuthTag().subarray(0, 8).toString('hex');
}

function same(what: string, got: unknown, expected: unknown): void {
  const [a, b] = [JSON.stringify(got), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what}: ${a}, expected ${b}`);
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** Checks the sums of every commit of a file without subfiles, by one rank or several; gives the number of commits. */
export function checkSums(bytes: Uint8Array): number {
  const file = File.openSync(memoryStorage(bytes));
  const commits = file.commits();
  file.closeSync();
  for (const { sequence, bytes: added, requests } of commits) {
    const state = File.openSync(memoryStorage(bytes), { asOf: sequence });
    const item = sessionOf(state).log?.main.committed.records.at(-1);
    state.closeSync();
    const { address, size } = item as { address: number; size: number };
    const record = parseRecords(bytes.subarray(address, address + size), address).at(-1) as CommitRecord;
    const { start, end } = record;
    same(`commit ${sequence}`, [record.sequence, record.requests, end - start], [sequence, requests, added]);
    same(`places of ${sequence} are in order`, start <= address && address + size <= end && end <= bytes.length, true);
    checkCommit(bytes, record, address, size);
  }
  return commits.length;
}

function checkCommit(
  bytes: Uint8Array,
  { sequence, start, end, kind, ranks, rest, sectionsSummed }: CommitRecord,
  address: number,
  size: number,
): void {
  const dataEnd = ranks.at(-1)?.end ?? start;
  let from = start;
  const shares = ranks.map(({ end: to }) => {
    same(`data of ${sequence}`, from <= to && to <= address, true);
    const share = bytes.subarray(from, to);
    from = to;
    return share;
  });
  if (kind === 0) return;
  // Of a large table each rank has written its own section; the header in front of them tells where they end.
  const header = sectionsSummed ? bytes.subarray(dataEnd, dataEnd + 8 * (ranks.length + 1)) : new Uint8Array(0);
  const view = new DataView(header.buffer, header.byteOffset, header.byteLength);
  let behind = dataEnd + header.length;
  ranks.forEach(({ rank, checksum }, i) => {
    const to = sectionsSummed ? dataEnd + Number(view.getBigUint64(8 * (i + 1), true)) : behind;
    same(
      `data of ${sequence}, rank ${rank}`,
      hex(checksum),
      sumOf(shares[i] as Uint8Array, bytes.subarray(behind, to)),
    );
    behind = to;
  });
  const others = [header, bytes.subarray(behind, address), bytes.subarray(address + size, end)];
  same(`everything else of ${sequence}`, hex(rest), sumOf(...others));
}
