import type { DiffEvent, DiffOptions, ValueDifference } from '../../tools/diff/diff.ts';
import { command, json } from '../command.ts';
import { LinePrinter } from '../print.ts';

export default command({
  name: 'diff',
  summary: 'compare the contents of two files, each a log or ordinary HDF5',
  details: [
    'Like h5diff, compares structure, types, shapes, attributes and values; a log is compared by its contents, not by how they are stored. Exit code 0: equal, 1: different, 2: error. NaN ' +
      'equals NaN. Unlike in h5diff, a different type, a different shape and a name that only one file has are differences. Links are compared by their targets.',
  ],
  positionals: [
    { name: 'A', help: 'a file' },
    { name: 'B', help: 'another file' },
    { name: 'OBJECT', optional: true, help: 'compare only this group or dataset of both files' },
    { name: 'OTHER', optional: true, help: 'the path of the object in B, if it differs' },
  ],
  options: {
    report: { type: 'flag', short: 'r', help: 'print every value that differs' },
    verbose: { type: 'flag', short: 'v', help: 'like -r, and print every object that was compared' },
    quiet: { type: 'flag', short: 'q', help: 'print nothing; only set the exit code' },
    delta: { type: 'number', short: 'd', value: 'D', help: 'numbers differ if |a - b| > D' },
    relative: { type: 'number', short: 'p', value: 'R', help: 'numbers differ if |(a - b) / a| > R' },
    count: { type: 'count', short: 'n', value: 'N', least: 1, help: 'print at most N values of an object' },
    'exclude-path': { type: 'text', value: 'PATH', many: true, help: 'skip an object and everything below it' },
    json,
  },
  examples: [
    { command: 'diff run.h5 replayed.h5', says: 'do both have the same contents?' },
    { command: 'diff -r -d 1e-6 a.h5 b.h5 /atm/T', says: 'values of /atm/T that differ by more than 1e-6' },
    { command: 'diff -q --exclude-path /log a.h5 b.h5', says: 'for scripts: exit code 0 or 1' },
  ],
  async run({ values, positionals, context }) {
    if (context.comm.rank > 0) return 0;
    const [a, b, object, otherObject] = positionals as [string, string, string?, string?];
    const { delta, relative, count, report, verbose, quiet } = values;
    const options: DiffOptions = {
      ...(delta !== undefined && { delta }),
      ...(relative !== undefined && { relative }),
      ...(object !== undefined && { object }),
      ...(otherObject !== undefined && { otherObject }),
      ...(count !== undefined && { listed: count }),
      excludePaths: values['exclude-path'],
    };
    const { diff, differencesOf } = await import('../../tools/diff/diff.ts');
    if (values.json) {
      const found = await diff(a, b, options);
      if (!quiet) context.printJson(found);
      return found.same ? 0 : 1;
    }
    const { shownText } = await import('../../tools/value-text.ts');
    const lines = new DiffLines([a, b], {
      values: report || verbose,
      all: verbose,
      relative: relative !== undefined,
      most: count ?? Infinity,
    });
    const printer = new LinePrinter(context);
    for await (const event of differencesOf(a, b, options)) {
      // The first difference decides the exit code.
      if (quiet && lines.differences > 0) break;
      for (const line of lines.of(event)) if (!quiet) await printer.print(shownText(line));
    }
    await printer.flush();
    return lines.differences === 0 ? 0 : 1;
  },
});

interface Wanted {
  readonly values: boolean;
  /** Report objects without differences too. */
  readonly all: boolean;
  readonly relative: boolean;
  readonly most: number;
}

/** Formats the events of a comparison as h5diff does. */
class DiffLines {
  readonly #files: readonly [string, string];
  readonly #wanted: Wanted;
  differences = 0;
  /** Title lines of an object, printed before its first difference. */
  #head: string[] = [];
  #listed = 0;

  constructor(files: readonly [string, string], wanted: Wanted) {
    this.#files = files;
    this.#wanted = wanted;
  }

  *of(event: DiffEvent): Iterable<string> {
    switch (event.type) {
      case 'only': {
        this.differences++;
        const what = event.name === undefined ? `<${event.path}>` : `attribute <${event.name} of <${event.path}>>`;
        yield `only in ${this.#files[event.in === 'a' ? 0 : 1]}: ${what}`;
        return;
      }
      case 'begin':
        this.#head = [title(event)];
        this.#listed = 0;
        if (this.#wanted.all) yield* this.#takeHead();
        return;
      case 'note':
        this.differences++;
        yield* this.#takeHead();
        yield event.text;
        return;
      case 'value':
        this.differences++;
        yield* this.#takeHead();
        if (this.#wanted.values) yield* this.#value(event.value);
        return;
      case 'end':
        if (event.differences > 0 || this.#wanted.all)
          yield `${event.differences} difference${event.differences === 1 ? '' : 's'} found`;
    }
  }

  *#takeHead(): Iterable<string> {
    yield* this.#head;
    this.#head = [];
  }

  *#value({ position, within, texts, difference, relative }: ValueDifference): Iterable<string> {
    if (this.#listed === this.#wanted.most) return;
    if (this.#listed++ === 0) {
      yield row('position', 'A', 'B', 'difference', ...(this.#wanted.relative ? ['relative'] : []));
      yield '-'.repeat(this.#wanted.relative ? 76 : 60);
    }
    const where = `${position.length === 0 ? '' : `[ ${position.join(' ')} ]`}${within}`;
    const parts = this.#wanted.relative && difference !== undefined ? [String(relative ?? 'not comparable')] : [];
    yield row(where, ...texts, difference === undefined ? '' : String(difference), ...parts);
  }
}

function title(event: DiffEvent & { type: 'begin' }): string {
  const { kind, path, otherPath, name } = event;
  const [a, b] = [path, otherPath].map((text) => (name === undefined ? `<${text}>` : `<${name} of <${text}>>`));
  return `${kind.padEnd(7)}: ${a} and ${b}`;
}

function row(...parts: string[]): string {
  return parts
    .map((part) => `${part} `.padEnd(16))
    .join('')
    .trimEnd();
}
