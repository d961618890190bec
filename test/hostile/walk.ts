import type { Dataset } from '../../src/api/dataset.ts';
import type { File } from '../../src/api/file.ts';
import { Group } from '../../src/api/group.ts';
import { handleOf, sessionOf } from '../../src/api/handle.ts';
import { isH5LogError } from '../../src/base/errors.ts';
import { fullType } from '../../src/dtype/model.ts';
import type { Where } from '../../src/space/select.ts';

/** A dataset up to this size is read whole. A larger one is legal without data: of it a corner is read, and the whole if nobody can hold it. */
const WHOLE = 2 ** 20;
const NOBODY = 2 ** 45;
/** Chunks up to this size are unfiltered whatever is stored of them. */
const LARGE_CHUNK = 64 * 2 ** 20;
/** Bytes of lists for each chunk that a read touches. */
const ENTRY = 16;

/** Looks at everything in a file. What throws is noted and the walk goes on, so that one damage does not hide another. */
export class Walk {
  readonly errors: unknown[] = [];
  /** Bytes of the largest result that was asked for, of all of them, and their number. */
  readonly asked = { largest: 0, total: 0, reads: 0 };
  readonly #seen = new Set<object>();
  readonly #readable: Dataset[] = [];

  of(file: File): this {
    this.#attributes(file);
    const groups: Group[] = [file];
    for (let group = groups.pop(); group; group = groups.pop()) {
      if (this.#seen.has(handleOf(group).node)) continue;
      this.#seen.add(handleOf(group).node);
      for (const child of this.#children(group)) {
        this.#attributes(child);
        if (child instanceof Group) groups.push(child);
        else this.#dataset(child);
      }
    }
    return this;
  }

  /** Reads the data of every dataset that was found. */
  data(): this {
    for (const dataset of this.#readable) {
      for (const where of this.#selections(dataset)) this.#try(() => dataset.readSync(where));
    }
    return this;
  }

  /** The same without blocking. */
  async dataLater(): Promise<this> {
    for (const dataset of this.#readable) {
      for (const where of this.#selections(dataset)) {
        try {
          await dataset.read(where);
        } catch (error) {
          this.errors.push(error);
        }
      }
    }
    return this;
  }

  /** Everything; the first and the last corner. */
  #selections(dataset: Dataset): (Where | undefined)[] {
    const found = this.#try(() => ({ shape: dataset.shape, width: fullType(dataset.dtype).size }));
    if (!found) return [];
    const { shape, width } = found;
    const count = shape.map((size) => Math.min(2, size));
    const corner = width * count.reduce((a, b) => a * b, 1);
    const whole = width * shape.reduce((a, b) => a * b, 1);
    const list: (Where | undefined)[] = [];
    // A part of a chunk takes the whole chunk, of which filters may have left nothing; and each chunk on the way takes an entry.
    const chunks = this.#try(() => dataset.chunks);
    const chunk = chunks ? width * chunks.reduce((a, b) => a * b, 1) : 0;
    const ask = (result: number, where: Where | undefined): void => {
      list.push(where);
      const entries = chunk > 0 ? ENTRY * Math.ceil(result / chunk) : 0;
      const bytes = result + entries + (chunk <= LARGE_CHUNK ? chunk : 0);
      this.asked.largest = Math.max(this.asked.largest, bytes);
      this.asked.total += bytes;
      this.asked.reads++;
    };
    if (whole <= WHOLE) ask(whole, undefined);
    else if (whole > NOBODY) ask(0, undefined);
    if (corner > WHOLE) return list;
    ask(corner, { start: shape.map(() => 0), count });
    ask(corner, { start: shape.map((size) => Math.max(0, size - 2)), count });
    return list;
  }

  #try<T>(work: () => T, isFine: (error: unknown) => boolean = () => false): T | undefined {
    try {
      return work();
    } catch (error) {
      if (!isFine(error)) this.errors.push(error);
      return undefined;
    }
  }

  #children(group: Group): (Group | Dataset)[] {
    const found: (Group | Dataset)[] = [];
    for (const name of this.#try(() => [...group.keys()]) ?? []) {
      const child = this.#try(() => group.get(name), isOutOfReach);
      if (child) found.push(child);
    }
    // The short way, once it is known to work.
    if (this.errors.length === 0) this.#try(() => [...group.children()]);
    return found;
  }

  #attributes({ attributes }: Group | Dataset): void {
    for (const name of this.#try(() => [...attributes.keys()]) ?? []) {
      this.#try(() => attributes.describe(name));
      this.#try(() => attributes.get(name));
    }
  }

  #dataset(dataset: Dataset): void {
    const { node } = handleOf(dataset);
    if (!this.#seen.has(node)) this.#readable.push(dataset);
    this.#seen.add(node);
    this.#try(() => [dataset.shape, dataset.maxShape, dataset.size, dataset.chunks, dataset.filters]);
    this.#try(() => dataset.is('int32'));
    this.#try(() => dataset.fill);
    // Parts that no public property shows yet.
    this.#try(() => sessionOf(dataset).structure.dataset(node));
  }
}

/** External links of a file in memory lead nowhere, and that is told as it should be. */
function isOutOfReach(error: unknown): boolean {
  return (
    isH5LogError(error, 'UNSUPPORTED') &&
    error.message.includes('which only a file that was opened by its path can find')
  );
}
