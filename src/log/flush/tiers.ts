/** So many neighbours of a size make one of the next; every byte is then rewritten once a tier, not once a flush. */
const FANOUT = 16;
/** What is larger than this stays as it is. */
const LARGEST = 2 ** 20;

/** Log datasets merge by number, not by size: nothing of them is rewritten. */
export const LOG_WEIGHT = 64;

/** One dataset of a series `_md_0`, `_md_1` ... in the log group. */
export interface TierItem {
  /** The number of the store it is in. */
  readonly place: number;
  readonly address: number;
  readonly size: number;
  /** What merging it would cost. */
  readonly weight: number;
  /** Its contents, for merging; null: they stay where they are and are never merged. */
  readonly bytes: Uint8Array | null;
  /** A table that the original wrote in merge mode; it stays as it is. */
  readonly merged?: boolean;
}

/** The tier of an item: how often sixteen of something small were put together to reach its weight. */
function tier(size: number): number {
  return Math.max(0, Math.floor(Math.log2(Math.max(1, size) / 64) / Math.log2(FANOUT)));
}

/**
 * How many items at the end of the list should become one, now that another is to be added; 0: none. Items
 * of a tier merge when there are sixteen of them, so that the whole list stays logarithmic in the number of flushes.
 */
export function mergeable(items: readonly TierItem[], weight: number): number {
  let merged = 0;
  let total = weight;
  for (;;) {
    const level = tier(total);
    let count = 0;
    let sum = total;
    for (let i = items.length - 1 - merged; i >= 0; i--) {
      const item = items[i] as TierItem;
      if (!item.bytes || tier(item.weight) > level || sum + item.weight > LARGEST) break;
      sum += item.weight;
      count++;
    }
    if (count + 1 < FANOUT) return merged;
    merged += count;
    total = sum;
  }
}
