import { expect, test } from 'vitest';
import { full, random, seed } from '../seed.ts';
import { type Sealed, sealedParts } from './checksums.ts';
import { Cases, PATIENCE } from './outcome.ts';
import { samples } from './samples.ts';

// What a reader of structure must look at, and where the format keeps a checksum. Indexes of chunks are data's business.
const WANTED = ['superblock', 'OHDR', 'OCHK', 'BTHD', 'BTLF', 'BTIN', 'FRHP', 'FHIB', 'FHDB', 'SMTB'];
const next = random(seed('flips under a checksum'));

test('a flipped bit under a checksum is FORMAT wherever the structure is in use', PATIENCE, () => {
  const cases = new Cases();
  const step = full ? 1 : 2;
  const reached = new Map<string, number>();
  for (const { name, bytes } of samples()) {
    for (const part of sealedParts(bytes)) {
      if (!inUse(name, bytes, part)) continue;
      reached.set(part.kind, (reached.get(part.kind) ?? 0) + part.to - part.from);
      for (let at = part.from + Math.floor(next() * step); at < part.to; at += step) {
        for (const bit of full ? [0, 1, 2, 3, 4, 5, 6, 7] : [Math.floor(next() * 8)]) {
          const flipped = bytes.slice();
          flipped[at] = (flipped[at] as number) ^ (1 << bit);
          const what = `bit ${bit} of byte ${at} in the ${part.kind} at ${part.from}`;
          cases.expect(cases.run(name, what, flipped), 'FORMAT', `${name}, ${what}`);
        }
      }
    }
  }
  const sizes = WANTED.map((kind) => `${kind} ${reached.get(kind) ?? 0}`).join(', ');
  process.stdout.write(`hostile, bytes under checksums in use: ${sizes}\n`);
  expect(cases.report('a flipped bit under a checksum')).toEqual([]);
  expect(WANTED.filter((kind) => !reached.has(kind))).toEqual([]);
});

/** Whether the reader comes by: it must stumble when nothing of the structure is left. */
function inUse(name: string, bytes: Uint8Array, { from, to }: Sealed): boolean {
  return new Cases().run(name, 'wiped', bytes.slice().fill(0x5a, from, to)) === 'FORMAT';
}
