/** What a peer is asked to do. */
export interface PeerTask {
  /** An empty directory for its files. */
  readonly folder: string;
  /** Which part of the full size of the workload; 1 is all of it. */
  readonly scale: number;
  /** Whether slow peers do all of the work too, and not a part that is scaled up. */
  readonly full: boolean;
}

export interface PeerFigure {
  /** That of our figure which it is compared with, or for `stream/write` see {@link OURS}. */
  readonly id: string;
  readonly seconds: number;
  /** Which part of the work was done; seconds are those of all of it. */
  readonly part: number;
}

/** Another program that does what one of our workloads does. It checks what it wrote, outside the clock, and throws where that is not what comes back. */
export interface Peer {
  readonly name: string;
  /** By name: small, stream, flushes. */
  readonly workloads: Readonly<Record<string, (task: PeerTask) => Promise<PeerFigure[]>>>;
}

/** Ours, where a peer's figure has another name: a peer has one way to write a stream. */
export const OURS: Readonly<Record<string, string>> = { 'stream/write': 'stream/async-lent' };

/** How much of `all` a peer does that can take only `most` in a reasonable time. */
export function partOf(all: number, most: number, { full }: PeerTask): { count: number; part: number } {
  const count = full ? all : Math.min(all, most);
  return { count, part: count / all };
}

/** Seconds of something, and what it gave. */
export async function timed<T>(run: () => T | Promise<T>): Promise<[seconds: number, result: T]> {
  const begun = performance.now();
  const result = await run();
  return [(performance.now() - begun) / 1000, result];
}
