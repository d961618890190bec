/** Numbers that break arithmetic in a field of 1, 2, 4 or 8 bytes: limits, sign bits, and the size of the file. */
function extremes(size: number): bigint[] {
  const limits = [8n, 16n, 32n, 53n, 64n].flatMap((bits) => [
    2n ** bits - 1n,
    2n ** bits - 2n,
    2n ** (bits - 1n),
    2n ** (bits - 1n) - 1n,
    2n ** (bits - 4n),
  ]);
  const file = BigInt(size);
  return [0n, 1n, 2n, 3n, 7n, 8n, 33n, ...limits, file, file - 1n, file + 1n, file / 2n, file * 1000n];
}

/** A file to damage, and the bytes of it that are worth it. */
export interface Target {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly places: readonly number[];
  readonly extremes: readonly bigint[];
}

/** Fields are where a byte is not zero, and up to seven bytes before or behind: the rest of a file is empty room. */
export function target(name: string, bytes: Uint8Array): Target {
  const places: number[] = [];
  for (let at = 0; at < bytes.length; at++) {
    const near = bytes.subarray(Math.max(0, at - 3), at + 4);
    if (near.some((byte) => byte !== 0)) places.push(at);
  }
  return { name, bytes, places, extremes: extremes(bytes.length) };
}

/** Damages a copy of a file in one to four places; `what` says how. */
export function mutate({ bytes, places, extremes }: Target, next: () => number): { bytes: Uint8Array; what: string } {
  const changed = bytes.slice();
  const view = new DataView(changed.buffer);
  const below = (most: number): number => Math.floor(next() * most);
  const place = (): number => places[below(places.length)] as number;
  const done: string[] = [];
  for (let left = 1 + below(4); left > 0; left--) {
    const kind = next();
    if (kind < 0.6) {
      const width = 2 ** below(4);
      // Most fields are aligned to their width.
      const at = Math.min(next() < 0.8 ? place() & ~(width - 1) : place(), bytes.length - width);
      const value = extremes[below(extremes.length)] as bigint;
      for (let i = 0; i < width; i++) changed[at + i] = Number((value >> BigInt(8 * i)) & 255n);
      done.push(`${width} bytes at ${at} = ${value}`);
    } else if (kind < 0.75) {
      const at = place();
      changed[at] = (changed[at] as number) ^ (1 << below(8));
      done.push(`flip at ${at}`);
    } else if (kind < 0.85) {
      const at = place();
      changed[at] = (changed[at] as number) + (next() < 0.5 ? 1 : 255);
      done.push(`step at ${at}`);
    } else if (kind < 0.95) {
      const [to, from, length] = [place(), place(), 2 ** below(8)];
      changed.copyWithin(to, from, from + length);
      done.push(`${length} bytes from ${from} to ${to}`);
    } else {
      // Addresses of other structures: most are a multiple of eight.
      const at = Math.min(place() & ~7, bytes.length - 8);
      const address = place() & ~7;
      view.setBigUint64(at, BigInt(address), true);
      done.push(`address ${address} at ${at}`);
    }
  }
  return { bytes: changed, what: done.join('; ') };
}
