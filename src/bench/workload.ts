import { closeSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { H5LogError } from '../base/errors.ts';

/** One measured number. */
export interface Figure {
  /** Stable id, such as `small/shuffled/write`; other programs are compared by it. */
  readonly id: string;
  readonly what: string;
  readonly value: number;
  readonly unit: 's' | 'ms' | '/s' | 'MB/s' | 'bytes' | 'MiB' | 'x' | 'count';
}

export interface WorkloadOptions {
  /** Directory for the files. Those of the last round are left in it. */
  readonly folder: string;
  /** Fraction of the full size; 1 is the full size. */
  readonly scale: number;
  /** Number of repetitions. Figures are the best of them unless they say otherwise. */
  readonly repeat: number;
  /** Called regularly with the fraction that is done, 0 to 1. */
  readonly onProgress?: (done: number) => void;
}

/** A benchmark. It reads back what it wrote and throws if the values differ. */
export interface Workload {
  readonly name: string;
  readonly summary: string;
  run(options: WorkloadOptions): AsyncIterable<Figure>;
}

/** A size times the scale, as a whole number. */
export function scaledSize(full: number, scale: number, least = 1): number {
  return Math.max(least, Math.round(full * scale));
}

/** Returns a function to await after each of `total` equal steps. It reports progress and lets the process receive signals, which it cannot while it blocks. */
export function steps(total: number, onProgress: WorkloadOptions['onProgress']): () => Promise<void> {
  let done = 0;
  return () => {
    done++;
    onProgress?.(Math.min(1, done / total));
    return setImmediate();
  };
}

/** Seconds since a time of `performance.now()`. */
export function secondsSince(begun: number): number {
  return (performance.now() - begun) / 1000;
}

export function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] as number;
}

/** The shortest time of each of several measurements: other load on the machine only makes times longer. */
export class Best {
  readonly #seconds = new Map<string, number>();

  add(id: string, seconds: number): void {
    this.#seconds.set(id, Math.min(seconds, this.of(id)));
  }

  /** Infinity if nothing was added under this id. */
  of(id: string): number {
    return this.#seconds.get(id) ?? Number.POSITIVE_INFINITY;
  }
}

/** Peak memory of this process in bytes. Not from resourceUsage() alone: that may start at the maximum of the parent process. */
export function peakMemory(): number {
  try {
    const [, kilobytes] = /VmHWM:\s*(\d+)/.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
    if (kilobytes !== undefined) return Number(kilobytes) * 1024;
  } catch {
    // Not Linux.
  }
  return process.resourceUsage().maxRSS * 1024;
}

/** Bytes of one write call. */
const WRITE_BYTES = 8 * 2 ** 20;

/** Seconds that plain writes of the same values take, 8 MiB each, `times` times over: the baseline of the machine. */
export function plainWrites(path: string, values: Float64Array, times = 1): number {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  const begun = performance.now();
  const handle = openSync(path, 'w');
  for (let at = 0; at < bytes.length * times; at += WRITE_BYTES) {
    const from = at % bytes.length;
    writeSync(handle, bytes, from, Math.min(WRITE_BYTES, bytes.length - from), at);
  }
  closeSync(handle);
  const seconds = secondsSince(begun);
  rmSync(path);
  return seconds;
}

/** Thrown if a value that was read is not the one that was written: the times are then meaningless. */
export function wrongValue(file: string, where: readonly number[], found: unknown, expected: unknown): H5LogError {
  const text = `${file}: element ${where.join(', ')} is ${String(found)}, but ${String(expected)} was written`;
  return new H5LogError('MISMATCH', text, { file });
}
