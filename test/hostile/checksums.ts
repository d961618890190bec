import { lookup3 } from '../../src/base/checksum.ts';

/** A checksummed structure as a scan for signatures finds it, without following a single address. */
export interface Sealed {
  readonly kind: string;
  readonly from: number;
  readonly to: number;
  /** Where its checksum lies: the last four bytes, but inside a direct block of a heap. */
  readonly sumAt: number;
}

const KINDS = [
  'OHDR',
  'OCHK',
  'BTHD',
  'BTLF',
  'BTIN',
  'FRHP',
  'FHIB',
  'SMTB',
  'SMLI',
  'FAHD',
  'FADB',
  'EAHD',
  'EAIB',
  'EASB',
  'EADB',
];
const LONGEST = 8192;

const textAt = (bytes: Uint8Array, at: number): string => String.fromCharCode(...bytes.subarray(at, at + 4));
const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** Finds every checksummed structure of an intact file. Its length is the one at which the checksum is right. */
export function sealedParts(bytes: Uint8Array): Sealed[] {
  const parts: Sealed[] = [];
  const start = superblockAt(bytes);
  if ((bytes[start + 8] as number) >= 2) {
    const to = start + 12 + 4 * (bytes[start + 9] as number) + 4;
    parts.push({ kind: 'superblock', from: start, to, sumAt: to - 4 });
  }
  for (let at = 0; at + 8 <= bytes.length; at++) {
    const kind = textAt(bytes, at);
    if (kind === 'FHDB') {
      const block = directBlock(bytes, at);
      if (block) parts.push(block);
    } else if (KINDS.includes(kind)) {
      const to = endOf(bytes, at);
      if (to) parts.push({ kind, from: at, to, sumAt: to - 4 });
    }
  }
  return parts;
}

export function superblockAt(bytes: Uint8Array): number {
  for (let at = 0; at + 8 <= bytes.length; at = at === 0 ? 512 : at * 2) if (textAt(bytes, at) === '\x89HDF') return at;
  throw new Error('no superblock');
}

function endOf(bytes: Uint8Array, at: number): number | undefined {
  const view = viewOf(bytes);
  const last = Math.min(bytes.length - 4, at + LONGEST);
  for (let sumAt = at + 4; sumAt <= last; sumAt++) {
    if (view.getUint32(sumAt, true) === lookup3(bytes, at, sumAt)) return sumAt + 4;
  }
  return undefined;
}

/** A direct block is summed with its checksum zero, which comes behind an offset of 1 to 8 bytes. */
function directBlock(bytes: Uint8Array, at: number): Sealed | undefined {
  for (let size = 64; at + size <= bytes.length; size *= 2) {
    for (let sumAt = at + 14; sumAt <= at + 21; sumAt++) {
      const copy = bytes.slice(at, at + size);
      copy.fill(0, sumAt - at, sumAt - at + 4);
      if (viewOf(bytes).getUint32(sumAt, true) === lookup3(copy))
        return { kind: 'FHDB', from: at, to: at + size, sumAt };
    }
  }
  return undefined;
}

/** Puts the right checksums back after a change, so that a reader gets past them. */
export function reseal(bytes: Uint8Array, parts: readonly Sealed[]): Uint8Array {
  const view = viewOf(bytes);
  for (const { kind, from, to, sumAt } of parts) {
    if (to > bytes.length) continue;
    if (kind === 'FHDB') {
      view.setUint32(sumAt, 0, true);
      view.setUint32(sumAt, lookup3(bytes, from, to), true);
    } else view.setUint32(sumAt, lookup3(bytes, from, sumAt), true);
  }
  return bytes;
}
