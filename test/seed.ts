/**
 * A new seed for this run, or H5LOG_SEED, printed so that a failure can be repeated.
 *
 * @example fc.assert(property, { seed: seed('superblock round trip'), numRuns: repeats(10_000) })
 */
export function seed(name: string): number {
  const given = process.env.H5LOG_SEED;
  const value = given === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(given);
  if (!Number.isSafeInteger(value)) throw new Error(`H5LOG_SEED is ${given}, not an integer`);
  process.stdout.write(`seed of ${name}: ${value} (repeat with H5LOG_SEED=${value})\n`);
  return value;
}

/** True in `npm run test:full`. */
export const full = process.env.H5LOG_FULL === '1';

/** How often to repeat: the whole number in `npm run test:full`, otherwise a tenth of it, rounded up. */
export function repeats(count: number): number {
  return full ? count : Math.ceil(count / 10);
}

/** All of them in `npm run test:full`, otherwise every fifth, another one each time, and those that are always wanted. */
export function some<T>(all: readonly T[], name: string, always: (item: T) => boolean = () => false): T[] {
  if (full) return [...all];
  const first = seed(name) % Math.min(5, all.length);
  return all.filter((item, i) => i % 5 === first || always(item));
}

/** Numbers in [0, 1), the same ones for the same seed (mulberry32). */
export function random(from: number): () => number {
  let state = from >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
