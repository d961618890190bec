import { setImmediate as turn } from 'node:timers/promises';
import type { Surroundings } from './surroundings.ts';

const ENOUGH = 2 ** 15;

/**
 * Prints many lines: in large parts, and with a turn of the event loop between them. Whoever read our output may have had enough, and
 * that is only noticed there.
 */
export class LinePrinter {
  readonly #around: Surroundings;
  #lines: string[] = [];
  #length = 0;

  constructor(around: Surroundings) {
    this.#around = around;
  }

  /** Wait for what it gives, if anything. */
  print(line: string): Promise<void> | undefined {
    this.#lines.push(line);
    this.#length += line.length + 1;
    return this.#length < ENOUGH ? undefined : this.flush();
  }

  async flush(): Promise<void> {
    if (this.#lines.length === 0) return;
    const text = this.#lines.join('\n');
    this.#lines = [];
    this.#length = 0;
    this.#around.print(text);
    await turn();
  }
}
