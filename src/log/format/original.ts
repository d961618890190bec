/*
 * Entries that the original wrote in merge mode. They put requests together without saying how many blocks each of them had: the
 * body is n, then for each request its starts, then its counts. So every way to cut the n blocks into requests is tried. What does
 * not fit the size of the data is no possibility. Of several, those that reach beyond the largest shape of the dataset are left out:
 * the original accepts such writes, so that alone makes nothing impossible. If more than one is left, nobody can say what was written.
 */

import { boxSize } from '../../space/box.ts';

/** What a decoded entry has to fit. */
export interface MergedFit {
  /** Elements of data that belong to the entry. */
  readonly elements: number;
  /** The largest shape the dataset can have; null: no limit. It decides between several ways only. */
  readonly limits: readonly (number | null)[];
}

/**
 * Steps after which the search is given up, and ways that are kept on the way. What programs write is decided long before; what is
 * made to be slow costs time in proportion to its size.
 */
const STEPS = 2 ** 16;
const STEPS_A_BLOCK = 1024;
const MOST_WAYS = 2 ** 18;
/** Most beginnings of requests are discarded at a glance. */
const GLANCE = 1 / 8;

/** A way to read the first blocks: the last request of it, and what came before. */
interface Prefix {
  readonly before: Prefix | null;
  readonly from: number;
  readonly length: number;
  /** Another way with the same blocks and elements so far gives other blocks. */
  many: boolean;
}

/** Raw coordinates of n blocks: 2n vectors, each of which is a start or a count. */
export class MergedEntry {
  readonly #rank: number;
  readonly #count: number;
  readonly #numbers: Float64Array;
  readonly #fit: MergedFit;
  /** Sums over the vectors before each: of their volumes, and of those that cannot be a count. */
  readonly #volumes: Float64Array;
  readonly #noCounts: Uint32Array;
  #steps = 0;
  #ways = 0;

  constructor(view: DataView, at: number, count: number, rank: number, fit: MergedFit) {
    this.#rank = rank;
    this.#count = count;
    this.#fit = fit;
    const numbers = new Float64Array(2 * count * rank);
    for (let k = 0, from = at; k < numbers.length; k++, from += 8)
      numbers[k] = view.getUint32(from, true) + view.getUint32(from + 4, true) * 2 ** 32;
    this.#numbers = numbers;
    this.#volumes = new Float64Array(2 * count + 1);
    this.#noCounts = new Uint32Array(2 * count + 1);
    for (let v = 0; v < 2 * count; v++) {
      const volume = boxSize(numbers, v * rank, rank);
      const mayBeCount = volume >= 1 && volume <= fit.elements;
      this.#volumes[v + 1] = (this.#volumes[v] as number) + (mayBeCount ? volume : 0);
      this.#noCounts[v + 1] = (this.#noCounts[v] as number) + (mayBeCount ? 0 : 1);
    }
  }

  /** Writes the blocks into flat lists from index `at` on; a text says why it cannot be done. */
  decode(starts: Float64Array, counts: Float64Array, at: number): string | null {
    let found = this.#search(false);
    if (found === SEVERAL) {
      const inside = this.#search(true);
      if (typeof inside !== 'string') found = inside;
    }
    if (found === SEVERAL) return `its ${this.#count} blocks can be read in more than one way`;
    if (typeof found === 'string') return found;
    const rank = this.#rank;
    for (let request: Prefix | null = found; request; request = request.before) {
      const { from, length } = request;
      for (let k = 0; k < length * rank; k++) {
        const to = at + from * rank + k;
        starts[to] = this.#numbers[2 * from * rank + k] as number;
        counts[to] = this.#numbers[(2 * from + length) * rank + k] as number;
      }
    }
    return null;
  }

  /** Block by block: the ways to read so many blocks, by the number of elements that they have. */
  #search(inside: boolean): Prefix | string {
    const count = this.#count;
    this.#steps = 0;
    this.#ways = 0;
    const most = STEPS + STEPS_A_BLOCK * count;
    const ways = Array.from({ length: count + 1 }, () => new Map<number, Prefix>());
    for (let from = 0; from < count; from++) {
      const reached: (readonly [number, Prefix | null])[] = from === 0 ? [[0, null]] : [...(ways[from] as Ways)];
      if (reached.length === 0) continue;
      for (let length = 1; length <= count - from; length++) {
        this.#steps += GLANCE;
        if (this.#steps > most) return TOO_LONG;
        const volume = this.#request(from, length, inside);
        if (volume < 0) continue;
        for (const [before, prefix] of reached) {
          if (++this.#steps > most || this.#ways > MOST_WAYS) return TOO_LONG;
          const elements = before + volume;
          // Every block that is left has an element at least.
          if (elements + (count - from - length) > this.#fit.elements) continue;
          this.#add(ways[from + length] as Ways, elements, {
            before: prefix,
            from,
            length,
            many: prefix?.many ?? false,
          });
        }
      }
      (ways[from] as Ways).clear();
    }
    const whole = ways[count]?.get(this.#fit.elements);
    if (!whole) return `no way to read its ${count} blocks gives the ${this.#fit.elements} elements of its data`;
    return whole.many ? SEVERAL : whole;
  }

  #add(ways: Ways, elements: number, way: Prefix): void {
    const known = ways.get(elements);
    if (!known) {
      ways.set(elements, way);
      this.#ways++;
    } else if (!known.many) known.many = way.many || !this.#same(known, way);
  }

  /** Elements of the request of so many blocks that begins with block `from`; -1 if there cannot be one. */
  #request(from: number, length: number, inside: boolean): number {
    const first = 2 * from + length;
    const last = first + length;
    if (this.#noCounts[last] !== this.#noCounts[first]) return -1;
    const rank = this.#rank;
    const { limits } = this.#fit;
    const start = 2 * from * rank;
    for (let k = 0; k < length * rank; k++) {
      const end = (this.#numbers[start + k] as number) + (this.#numbers[first * rank + k] as number);
      if (end > ((inside ? limits[k % rank] : null) ?? Number.MAX_SAFE_INTEGER)) return -1;
      this.#steps++;
    }
    return (this.#volumes[last] as number) - (this.#volumes[first] as number);
  }

  /** Whether two ways to read the first blocks come to the same blocks. */
  #same(a: Prefix, b: Prefix): boolean {
    const rank = this.#rank;
    const length = (a.from + a.length) * rank;
    this.#steps += 4 * length;
    const [one, other] = [a, b].map((way) => {
      const list = new Float64Array(2 * length);
      for (let request: Prefix | null = way; request; request = request.before) {
        const numbers = 2 * request.from * rank;
        const half = request.length * rank;
        list.set(this.#numbers.subarray(numbers, numbers + half), request.from * rank);
        list.set(this.#numbers.subarray(numbers + half, numbers + 2 * half), length + request.from * rank);
      }
      return list;
    }) as [Float64Array, Float64Array];
    return one.every((number, i) => number === other[i]);
  }
}

type Ways = Map<number, Prefix>;

const SEVERAL = 'several';
const TOO_LONG = 'it has too many blocks to find out how they were put together';
