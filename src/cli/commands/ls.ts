import { statSync } from 'node:fs';
import type { Filter } from '../../api/dataset.ts';
import type { ListedAttribute, ListedObject, Listing } from '../../tools/list/list.ts';
import { command, type ExitCode, json } from '../command.ts';
import { isNumbered, LinePrinter, logsText, type Palette, type Screen, scaled, screenOf, several } from '../print.ts';

export default command({
  name: 'ls',
  summary: 'list groups, datasets and links, with the logical shapes of a log',
  details: [
    'Like h5ls, but shows the logical shape and type of datasets in a log, the number of blocks written to them and their size in the file. A maximum size that differs from the size ' +
      'follows it: {3/Inf, 72}. Prints a coloured tree on a terminal (NO_COLOR switches colours off), otherwise one line per object with its path. The exit code is 1 if an object is damaged.',
  ],
  positionals: [{ name: 'FILE[/object]', many: true, help: 'a file, or a group or dataset in it' }],
  options: {
    recursive: { type: 'flag', short: 'r', help: 'list groups recursively' },
    verbose: {
      type: 'flag',
      short: 'v',
      help: 'print attributes, chunks, filters, fill value, what other programs see, and where logs live unless all datasets share one',
    },
    netcdf: { type: 'flag', help: 'print dimensions, variables and attributes of netCDF, as `ncdump -h` does' },
    json,
  },
  examples: [
    { command: 'ls run.h5', says: 'the contents of the root group' },
    { command: 'ls -r -v run.h5/atm', says: 'everything below /atm, with attributes' },
    { command: 'ls -r --json run.h5', says: 'everything, for a program' },
    { command: 'ls run.h5 other.h5', says: 'several files' },
    { command: 'ls --netcdf field.nc', says: 'the header in CDL' },
  ],
  async run({ values, positionals, context }) {
    if (context.comm.rank > 0) return 0;
    if (values.netcdf) {
      const { netcdfHeader } = await import('../../tools/list/cdl.ts');
      const headers = [];
      for (const file of positionals) headers.push(await netcdfHeader(file));
      if (values.json) context.printJson(positionals.length === 1 ? headers[0] : headers);
      else for (const line of headers.flat()) context.print(line);
      return 0;
    }
    const { list } = await import('../../tools/list/list.ts');
    const { recursive, verbose } = values;
    const listings: Listing[] = [];
    const printer = new LinePrinter(context);
    let code: ExitCode = 0;
    for (const text of positionals) {
      const { file, object } = fileAndObject(text);
      try {
        const listing = await list(file, { object, recursive, verbose });
        if (code === 0 && listing.objects.some(({ problem }) => problem !== undefined)) code = 1;
        if (!values.json) {
          if (positionals.length > 1) await printer.print(`${listings.length > 0 ? '\n' : ''}${text}:`);
          const { logs } = listing;
          if (verbose && logs && isNumbered(logs)) await printer.print(`logs: ${logsText(logs)}`);
          for (const line of await lines(listing, recursive, screenOf())) await printer.print(line);
        }
        listings.push(listing);
      } catch (error) {
        // One file that cannot be listed does not hide the others.
        if (positionals.length === 1) throw error;
        await printer.flush();
        context.fail(error);
        code = 2;
      }
    }
    if (values.json) context.printJson(positionals.length === 1 ? listings[0] : listings);
    await printer.flush();
    return code;
  },
});

async function lines(listing: Listing, recursive: boolean, screen: Screen): Promise<string[]> {
  const { shownText } = await import('../../tools/value-text.ts');
  const { palette, isTerminal } = screen;
  const { objects } = listing;
  const names = objects.map(({ name, path }) => shownText(recursive && !isTerminal ? path : name));
  const before = isTerminal ? branches(objects) : objects.map(() => ({ first: '', next: '' }));
  const width = Math.max(24, ...names.map((name, i) => length(name) + length(before[i]?.first ?? '')));
  // One very long name must not move the second column out of sight.
  const column = Math.min(width, 48);
  return objects.flatMap((object, i) => {
    const { first, next } = before[i] as Branch;
    const name = names[i] as string;
    const space = ' '.repeat(Math.max(1, column + 1 - length(name) - length(first)));
    const line = `${palette.dim(first)}${coloured(name, object, palette)}${space}${what(object, palette, shownText)}`;
    const under = palette.dim(isTerminal ? `${next}    ` : '    ');
    return [line, ...details(object, shownText).map((detail) => `${under}${detail}`)];
  });
}

const length = (text: string): number => [...text].length;

interface Branch {
  readonly first: string;
  readonly next: string;
}

/** The branches of the tree in front of each name, and in front of the lines below it. */
function branches(objects: readonly ListedObject[]): Branch[] {
  const result: Branch[] = new Array(objects.length);
  // Backwards: `open[depth]` tells whether a sibling follows at that depth.
  let open: boolean[] = [];
  for (let i = objects.length - 1; i >= 0; i--) {
    const { depth } = objects[i] as ListedObject;
    const isLast = !open[depth];
    const bars = Array.from({ length: Math.max(0, depth - 1) }, (_, d) => (open[d + 1] ? '│  ' : '   ')).join('');
    result[i] =
      depth === 0
        ? { first: '', next: '' }
        : { first: `${bars}${isLast ? '└─ ' : '├─ '}`, next: `${bars}${isLast ? '   ' : '│  '}` };
    open = open.slice(0, depth + 1);
    open[depth] = true;
  }
  return result;
}

function coloured(name: string, { kind }: ListedObject, palette: Palette): string {
  if (kind === 'group') return palette.group(name);
  return kind === 'dataset' ? palette.dataset(name) : palette.link(name);
}

function what(object: ListedObject, palette: Palette, shown: (text: string) => string): string {
  const { kind, sameAs, target = '', targetFile = '', dtype = '', log, bytes, layout, problem } = object;
  if (problem !== undefined) return palette.warning(`cannot be read: ${shown(problem)}`);
  const same = sameAs === undefined ? '' : `, same as ${shown(sameAs)}`;
  switch (kind) {
    case 'group':
      return `Group${same}`;
    case 'soft link':
      return `Soft Link {${shown(target)}}`;
    case 'external link':
      return `External Link {${shown(targetFile)}/${shown(target)}}`;
    case 'datatype':
      return `Type ${dtype}`;
    case 'other link':
      return palette.warning('Link of an unknown kind, or to nothing');
    case 'dataset': {
      if (sameAs !== undefined) return `Dataset${same}`;
      const size = bytes === undefined ? '' : `, ${scaled(bytes, 'B')}`;
      const stored = log ? `${several(log.blocks, 'block')}${size}` : `${layout}${size}`;
      return `Dataset ${extent(object)} ${shown(dtype)}, ${palette.dim(stored)}`;
    }
  }
}

/** {3/Inf, 72}: sizes, and maxima where they differ. */
function extent({ shape, maxShape = [] }: ListedObject): string {
  if (shape === null || shape === undefined) return '{NULL}';
  if (shape.length === 0) return '{SCALAR}';
  return `{${shape.map((size, d) => (maxShape[d] === size ? size : `${size}/${maxShape[d] ?? 'Inf'}`)).join(', ')}}`;
}

function* rows({ chunks, filters = [], fill, log, attributes = [] }: ListedObject): Iterable<[string, string]> {
  if (log) {
    yield ['number', `${log.id}, in ${several(log.entries, 'entry', 'entries')} of the tables`];
    const { published } = log;
    yield [
      'published',
      published ? `commit ${published.sequence}, ${published.way}` : 'never: other programs see no data',
    ];
  }
  if (chunks) yield ['chunks', `{${chunks.join(', ')}}`];
  if (filters.length > 0) yield ['filters', filters.map(filterText).join(', ')];
  if (fill !== undefined && fill !== null) yield ['fill', JSON.stringify(fill)];
  for (const attribute of attributes) yield ['attribute', attributeText(attribute)];
}

function filterText(filter: Filter): string {
  if (typeof filter === 'string') return filter;
  return 'deflate' in filter
    ? `deflate ${filter.deflate}`
    : `filter ${[filter.id, ...(filter.parameters ?? [])].join(' ')}`;
}

/** The lines below an object, with -v only: otherwise it has no attributes. */
function details(object: ListedObject, shown: (text: string) => string): string[] {
  if (!object.attributes) return [];
  return [...rows(object)].map(([name, text]) => `${name.padEnd(9)}  ${shown(text)}`);
}

/** Longer attribute values are cut. */
const MAX_VALUE = 100;

function attributeText({ name, dtype, shape, value }: ListedAttribute): string {
  const size = shape === null ? 'NULL' : shape.length === 0 ? '' : ` {${shape.join(', ')}}`;
  const text = shape === null ? '' : ` = ${JSON.stringify(value)}`;
  return `${name} ${dtype}${size}${text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE)} ...` : text}`;
}

/** Splits FILE[/object]: the longest prefix that is a file, and the path in it. */
function fileAndObject(text: string): { file: string; object: string } {
  if (/^https?:\/\//i.test(text)) return { file: text, object: '/' };
  for (let end = text.length; end > 0; end = text.lastIndexOf('/', end - 1)) {
    const file = text.slice(0, end);
    if (isFile(file)) return { file, object: text.slice(end) || '/' };
  }
  return { file: text, object: '/' };
}

/** Whether the path is anything but a directory: opening a device or a pipe reports its own error. */
function isFile(path: string): boolean {
  try {
    return !statSync(path).isDirectory();
  } catch {
    return false;
  }
}
