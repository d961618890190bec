import type { WriteStream } from 'node:tty';

/** What a command reports its progress to. */
export interface Progress {
  /** `part` is what is done, from 0 to 1. */
  show(part: number, text: string): void;
  /** Removes it, before something is printed. */
  clear(): void;
}

export const noProgress: Progress = { show: () => {}, clear: () => {} };

const MILLISECONDS = 50;
const BAR = 30;

/**
 * A bar in the last line of a terminal. None for files and pipes, nor for the terminals of 0 columns that MPI launchers give.
 */
export function progressOn(stream: Pick<WriteStream, 'isTTY' | 'columns' | 'write'>): Progress {
  if (!stream.isTTY || !(stream.columns > 0)) return noProgress;
  let shown = '';
  let last = Number.NEGATIVE_INFINITY;
  return {
    show(part, text) {
      const now = performance.now();
      if (part < 1 && now - last < MILLISECONDS) return;
      last = now;
      const done = Math.round(Math.min(1, Math.max(0, part)) * BAR);
      const line = `[${'#'.repeat(done)}${'.'.repeat(BAR - done)}] ${text}`.slice(0, stream.columns - 1);
      if (line === shown) return;
      stream.write(`\r${line.padEnd(shown.length)}`);
      shown = line;
    },
    clear() {
      if (shown !== '') stream.write(`\r${' '.repeat(shown.length)}\r`);
      shown = '';
    },
  };
}
