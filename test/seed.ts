import { count } from './counts.ts';

/** True in `npm run test:full`: every case of a list is tried, not a fixed selection. */
export const full = process.env.H5LOG_FULL === '1';

/** Which part of the repetitions a run does: all of them in `npm run test:full`, a tenth in `npm test`, or what H5LOG_SCALE says. */
const scale = full ? 1 : numberOf('H5LOG_SCALE', 0.1);

/**
 * The seed of a random suite. It follows from the suite's name: every run does the same, and suites differ from one another.
 * H5LOG_SEED takes its place, in `npm run soak` a new one each turn.
 */
export function seed(name: string): number {
  const value = numberOf('H5LOG_SEED', hash(name));
  if (!Number.isSafeInteger(value)) throw new Error(`H5LOG_SEED is ${value}, not an integer`);
  return value;
}

/** How often to repeat: the whole number in `npm run test:full`, otherwise a part of it, rounded up. */
export function repeats(most: number): number {
  return Math.ceil(most * scale);
}

/**
 * Parameters of a fast-check property: its seed and the number of its runs, which is counted.
 *
 * @example fc.assert(property, runs('superblock round trip', 10_000))
 */
export function runs(name: string, most: number): { seed: number; numRuns: number } {
  const numRuns = repeats(most);
  count(name, { runs: numRuns });
  return { seed: seed(name), numRuns };
}

/** All of them in `npm run test:full`, otherwise every fifth from one that the seed chooses, and those that are always wanted. */
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

/** Random bytes, the same ones for the same seed. */
export function noise(length: number, from: number): Uint8Array<ArrayBuffer> {
  const next = random(from);
  return Uint8Array.from({ length }, () => Math.floor(next() * 256));
}

/** FNV-1a of a text, as a non-negative 31-bit integer. */
function hash(text: string): number {
  let state = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) state = Math.imul(state ^ byte, 0x01000193);
  return state >>> 1;
}

/** The number in an environment variable, or `otherwise` if it is not set. */
function numberOf(variable: string, otherwise: number): number {
  const text = process.env[variable];
  if (text === undefined) return otherwise;
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value) || value < 0)
    throw new Error(`${variable} is ${JSON.stringify(text)}, not a number`);
  return value;
}
