import { expect } from 'vitest';
import { lookup3 } from '../../../../src/base/checksum.ts';
import type { StoredChunk } from '../../../../src/hdf5/layouts/chunks/chunk-index.ts';

/** What there is to know of a tree in a file. */
export interface CheckedTree {
  readonly chunks: StoredChunk[];
  readonly nodes: number;
  readonly depth: number;
}

/** Bytes that a number up to `limit` needs, as libhdf5 computes it: log2(limit) / 8 + 1. */
const widthOf = (limit: number): number => Math.floor(Math.floor(Math.log2(limit)) / 8) + 1;

/**
 * Walks through a version 2 B-tree of chunks, by the format specification and without h5log's reader, and checks what libhdf5 relies
 * on: checksums, counts, the order of the records, and that every node but the root holds between its merge and its split number.
 */
export function checkTree(bytes: Uint8Array, address: number, rank: number, filtered: boolean): CheckedTree {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const u64 = (at: number): number => Number(view.getBigUint64(at, true));
  const uint = (at: number, size: number): number => {
    let value = 0;
    for (let i = size - 1; i >= 0; i--) value = value * 256 + view.getUint8(at + i);
    return value;
  };
  const signature = (at: number): string => String.fromCharCode(...bytes.subarray(at, at + 4));
  const sum = (from: number, at: number): void => {
    if (view.getUint32(at, true) !== lookup3(bytes, from, at)) throw new Error(`wrong checksum at ${at}`);
  };

  expect(signature(address)).toBe('BTHD');
  expect([view.getUint8(address + 4), view.getUint8(address + 5)]).toEqual([0, filtered ? 11 : 10]);
  const nodeSize = view.getUint32(address + 6, true);
  const recordSize = view.getUint16(address + 10, true);
  const depth = view.getUint16(address + 12, true);
  const [split, merge] = [view.getUint8(address + 14), view.getUint8(address + 15)];
  const root = view.getBigUint64(address + 16, true);
  const rootCount = view.getUint16(address + 24, true);
  const total = u64(address + 26);
  sum(address, address + 34);
  const sizeBytes = filtered ? recordSize - 8 - 4 - 8 * rank : 0;

  const most = [Math.floor((nodeSize - 10) / recordSize)];
  const cumulative = [most[0] as number];
  const countBytes = widthOf(most[0] as number);
  const pointer = (d: number): number => 8 + countBytes + (d > 1 ? widthOf(cumulative[d - 1] as number) : 0);
  for (let d = 1; d <= depth; d++) {
    most.push(Math.floor((nodeSize - 10 - pointer(d)) / (recordSize + pointer(d))));
    cumulative.push(((most[d] as number) + 1) * (cumulative[d - 1] as number) + (most[d] as number));
  }

  const chunks: StoredChunk[] = [];
  let nodes = 0;
  const walk = (at: number, count: number, all: number, d: number, isRoot: boolean): void => {
    nodes++;
    const before = chunks.length;
    const start = `${signature(at)} ${view.getUint8(at + 4)} ${view.getUint8(at + 5)}`;
    if (start !== `${d === 0 ? 'BTLF' : 'BTIN'} 0 ${filtered ? 11 : 10}`) throw new Error(`node ${at} begins ${start}`);
    const max = most[d] as number;
    const [low, high] = [isRoot ? 1 : Math.floor((max * merge) / 100), Math.floor((max * split) / 100)];
    if (count < low || count > high) throw new Error(`${count} records in a node of ${low} to ${high}, depth ${d}`);
    let where = at + 6 + count * recordSize;
    const children: [number, number, number][] = [];
    for (let i = 0; d > 0 && i <= count; i++, where += pointer(d)) {
      const n = uint(where + 8, countBytes);
      children.push([u64(where), n, d > 1 ? uint(where + 8 + countBytes, pointer(d) - 8 - countBytes) : n]);
    }
    sum(at, where);
    for (let i = 0; i <= count; i++) {
      const child = children[i];
      if (child) walk(...child, d - 1, false);
      if (i === count) break;
      const from = at + 6 + i * recordSize;
      chunks.push({
        address: u64(from),
        size: filtered ? uint(from + 8, sizeBytes) : -1,
        mask: filtered ? view.getUint32(from + 8 + sizeBytes, true) : 0,
        cell: Array.from({ length: rank }, (_, e) => u64(from + recordSize - 8 * (rank - e))),
      });
    }
    if (chunks.length - before !== all) throw new Error(`${chunks.length - before} records where ${all} are announced`);
  };
  if (root === 2n ** 64n - 1n) expect([rootCount, total, depth]).toEqual([0, 0, 0]);
  else walk(Number(root), rootCount, total, depth, true);
  for (let i = 1; i < chunks.length; i++) {
    const [a, b] = [(chunks[i - 1] as StoredChunk).cell, (chunks[i] as StoredChunk).cell];
    const e = a.findIndex((c, k) => c !== b[k]);
    if (e < 0 || (a[e] as number) > (b[e] as number)) throw new Error(`${a} before ${b}`);
  }
  return { chunks, nodes, depth };
}
