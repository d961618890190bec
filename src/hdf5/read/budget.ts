import { formatError } from '../../base/errors.ts';
import type { FileBytes } from '../format/file-bytes.ts';

/**
 * Parts of a file do not overlap, so all of one kind together are never longer than the file. Where they are, the file was made
 * to keep its reader busy: the same bytes are to be read again and again.
 */
export class Budget {
  readonly #file: FileBytes;
  #spent = 0;

  constructor(file: FileBytes) {
    this.#file = file;
  }

  get spent(): number {
    return this.#spent;
  }

  /** Gives back what was spent since, because it could not be read after all. A file that was caught stays caught. */
  backTo(spent: number): void {
    if (this.#spent <= this.#file.end) this.#spent = spent;
  }

  spend(bytes: number, address: number, what: string): void {
    this.#spent += bytes;
    if (this.#spent > this.#file.end)
      throw formatError(`${what} that overlap: together they are longer than the file`, this.#file.base + address);
  }
}
