import { setImmediate } from 'node:timers/promises';

/** One measured number. */
export interface Figure {
  /** Which one it is, for those that measure the same with another program: `small/shuffled/write`. */
  readonly id: string;
  readonly what: string;
  readonly value: number;
  readonly unit: 's' | 'ms' | '/s' | 'MB/s' | 'bytes' | 'MiB' | 'x' | 'count';
}

export interface WorkloadOptions {
  /** A directory for its files. Those of the last round are left in it, for whoever wants to look at them. */
  readonly folder: string;
  /** Which part of the full size; 1 is all of it. */
  readonly scale: number;
  /** How often to do it all; figures are the best of these, unless they say something else. */
  readonly repeat: number;
  /** Called now and then with the part that is done, 0 to 1. */
  readonly onProgress?: (done: number) => void;
}

/** Something that is measured. It checks what it wrote, and throws where that is not what comes back. */
export interface Workload {
  readonly name: string;
  readonly summary: string;
  run(options: WorkloadOptions): AsyncIterable<Figure>;
}

/** A size at some scale, in whole units. */
export function scaledSize(full: number, scale: number, least = 1): number {
  return Math.max(least, Math.round(full * scale));
}

/** To be called and waited for after each of so many equal steps. It also lets the process hear signals, which it cannot while it blocks. */
export function steps(total: number, onProgress: WorkloadOptions['onProgress']): () => Promise<void> {
  let done = 0;
  return () => {
    done++;
    onProgress?.(Math.min(1, done / total));
    return setImmediate();
  };
}
