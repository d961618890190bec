import type { Dataset } from '../../src/api/dataset.ts';
import type { File } from '../../src/api/file.ts';
import { Group } from '../../src/api/group.ts';
import { handleOf, sessionOf } from '../../src/api/handle.ts';

/** Looks at everything in a file. What throws is noted and the walk goes on, so that one damage does not hide another. */
export class Walk {
  readonly errors: unknown[] = [];
  readonly #seen = new Set<object>();

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

  #try<T>(work: () => T): T | undefined {
    try {
      return work();
    } catch (error) {
      this.errors.push(error);
      return undefined;
    }
  }

  #children(group: Group): (Group | Dataset)[] {
    const found: (Group | Dataset)[] = [];
    for (const name of this.#try(() => [...group.keys()]) ?? []) {
      const child = this.#try(() => group.get(name));
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
    this.#try(() => [dataset.shape, dataset.maxShape, dataset.size, dataset.chunks, dataset.filters]);
    this.#try(() => [dataset.dtype, dataset.is('int32')]);
    this.#try(() => dataset.fill);
    // Parts that no public property shows yet.
    this.#try(() => sessionOf(dataset).structure.dataset(handleOf(dataset).node));
  }
}
