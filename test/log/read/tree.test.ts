import { describe, expect, test } from 'vitest';
import { BlockIndex } from '../../../src/log/read/index.ts';
import { overlaps } from '../../../src/space/box.ts';
import { count } from '../../counts.ts';
import { random, repeats, seed } from '../../seed.ts';

type Next = () => number;

/** How blocks may lie: where one starts in a dimension, for a list of so many. */
const PLACES: Readonly<Record<string, (next: Next, blocks: number) => number>> = {
  everywhere: (next, blocks) => Math.floor(next() * 4 * blocks),
  'in one place': () => 7,
  'in a few places': (next) => 1000 * Math.floor(next() * 3),
  'ever further apart': (next) => Math.floor(2 ** (next() * 50)),
  'as far away as can be': (next, blocks) => 2 ** 53 - 1e7 + Math.floor(next() * 4 * blocks),
  'in heaps': (next, blocks) => Math.floor(next() * 5) * 1e9 + Math.floor(next() * blocks),
};

describe('the blocks that a box touches', () => {
  test.each(Object.keys(PLACES))('are found, however blocks lie: %s', (how) => {
    const name = `trees of blocks, ${how}`;
    const next = random(seed(name));
    const place = PLACES[how] as (next: Next, blocks: number) => number;
    const lists = repeats(20);
    let queries = 0;
    for (let k = 0; k < lists; k++) {
      const rank = 1 + Math.floor(next() * 4);
      const blocks = 600 + Math.floor(next() ** 3 * 20_000);
      const index = new BlockIndex(rank);
      // One large block among small ones changes how nodes are bounded.
      const large = k % 2 === 0 ? 0 : 0.001;
      const grow = (more: number): void => {
        index.reserve(more);
        for (let i = 0; i < more; i++) {
          const at = index.length * rank;
          for (let d = 0; d < rank; d++) {
            index.starts[at + d] = place(next, blocks);
            index.counts[at + d] = next() < large ? 1e6 : 1 + Math.floor(next() * 5);
          }
          index.add(index.length, 0);
        }
      };
      grow(blocks);
      for (let q = 0; q < 60; q++) {
        if (q === 30) grow(700);
        // Mostly near a block, and mostly near the same few: leaves are split after some scans.
        const near = Math.floor(next() * (q % 3 === 0 ? index.length : 5)) * rank;
        const low = Float64Array.from(
          { length: rank },
          (_, d) => (index.starts[near + d] as number) - Math.floor(next() * 3),
        );
        const high = low.map((from) => from + 1 + Math.floor(next() ** 4 * blocks));
        const expected: number[] = [];
        for (let i = 0; i < index.length; i++)
          if (overlaps(index.starts, index.counts, i * rank, rank, low, high)) expected.push(i);
        const found = index.query(low, high);
        if (found.length !== expected.length || expected.some((block, i) => found[i] !== block))
          expect([...found], `list ${k}, query ${q}`).toEqual(expected);
        queries++;
      }
    }
    count(name, { lists, queries });
  });
});
