import { closeSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { H5LogError } from '../base/errors.ts';

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

/** Seconds since a moment of `performance.now()`. */
export function secondsSince(begun: number): number {
  return (performance.now() - begun) / 1000;
}

export function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] as number;
}

/** The shortest time of each of several things: whoever else uses the machine only makes it longer. */
export class Best {
  readonly #seconds = new Map<string, number>();

  add(id: string, seconds: number): void {
    this.#seconds.set(id, Math.min(seconds, this.of(id)));
  }

  /** Infinite if there is none. */
  of(id: string): number {
    return this.#seconds.get(id) ?? Number.POSITIVE_INFINITY;
  }
}

/** The most memory that this process has had, in bytes. resourceUsage() may go on from the maximum of the process that started this one. */
export function peakMemory(): number {
  try {
    const [, kilobytes] = /VmHWM:\s*(\d+)/.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
    if (kilobytes !== undefined) return Number(kilobytes) * 1024;
  } catch {
    // Another system than Linux.
  }
  return process.resourceUsage().maxRSS * 1024;
}

/** Bytes of one write call. */
const WRITE_BYTES = 8 * 2 ** 20;

/** Seconds of writing the same values some times over, in pieces of 8 MiB: what the machine can do without us. */
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

/** What was read is not what was written: its times are worth nothing. */
export function wrongValue(file: string, where: readonly number[], found: unknown, expected: unknown): H5LogError {
  const text = `${file}: element ${where.join(', ')} is ${String(found)}, but ${String(expected)} was written`;
  return new H5LogError('MISMATCH', text, { file });
}
