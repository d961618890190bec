import { H5LogError } from '../../base/errors.ts';
import type { Dump, DumpedEntry, DumpedSection, DumpedTable } from '../../tools/dump/dump.ts';
import { command, json } from '../command.ts';
import type { CommandContext } from '../context.ts';
import { isNumbered, LinePrinter, logsText, several } from '../print.ts';

/** Blocks of an entry that are printed without -v. */
const SHOWN_BLOCKS = 4;

export default command({
  name: 'dump',
  summary: 'print the contents of a file as h5dump does, or the internals of its log',
  details: [
    'Prints all groups, links, attributes and values like h5dump; of a log, what is visible now. Numbers have as many digits as it takes to read the same number back. Large datasets are read ' +
      'in parts. An object that cannot be read gets a line ERROR; the exit code is then 1.',
    '--log prints the configuration of the log and its tables with their sections and entries, like h5ldump of the original log VOL.',
    'LIST is a number for each dimension, separated by commas.',
  ],
  positionals: [{ name: 'FILE', help: 'a file' }],
  options: {
    header: { type: 'flag', short: 'H', help: 'print no values; with --log no table entries' },
    dataset: { type: 'text', short: 'd', value: 'PATH', many: true, help: 'print only this dataset' },
    start: { type: 'text', short: 's', value: 'LIST', otherwise: 'the beginning', help: 'start of the selection' },
    stride: {
      type: 'text',
      short: 'S',
      value: 'LIST',
      otherwise: 'the block',
      help: 'distance between the starts of two blocks',
    },
    count: { type: 'text', short: 'c', value: 'LIST', otherwise: 'up to the end', help: 'number of blocks' },
    block: { type: 'text', value: 'LIST', otherwise: '1', help: 'size of a block' },
    log: { type: 'flag', help: 'print the log: its configuration, tables and entries' },
    verbose: {
      type: 'flag',
      short: 'v',
      help: `with --log: print all blocks of an entry, not only the first ${SHOWN_BLOCKS}`,
    },
    kind: {
      type: 'flag',
      short: 'k',
      help: 'print only the kind of file: HDF5, HDF5-LogVOL, NetCDF-4, NetCDF classic ...',
    },
    json,
  },
  examples: [
    { command: 'dump run.h5', says: 'everything' },
    { command: 'dump -H run.h5', says: 'types, shapes and names only' },
    { command: 'dump -d /atm/T -s 0,0,0 -c 1,1,10 run.h5', says: 'the first ten values' },
    { command: 'dump --log -v run.h5', says: 'every entry of every table, with all blocks' },
    { command: 'dump -k run.h5', says: 'the kind of file' },
  ],
  async run({ values, positionals, context }) {
    if (context.comm.rank > 0) return 0;
    const path = positionals[0] as string;
    const slab = slabFrom(values);
    checkCombination(values, slab);
    if (values.kind) {
      const { fileKind } = await import('../../tools/inside.ts');
      const kind = await fileKind(path);
      if (values.json) context.printJson({ file: path, kind });
      else context.print(kind);
      return 0;
    }
    if (values.log) {
      if (!values.json) await printLog(path, values.header, values.verbose ? Infinity : SHOWN_BLOCKS, context);
      else {
        const { dump } = await import('../../tools/dump/dump.ts');
        context.printJson(await dump(path, { header: values.header }));
      }
      return 0;
    }
    const { datasetJson, datasetLines } = await import('../../tools/dump/contents.ts');
    const { dataset: datasets, header } = values;
    const options = { slab, header, ...(datasets.length > 0 && { datasets }) };
    const printer = new LinePrinter(context);
    const lines = values.json ? datasetJson(path, options) : datasetLines(path, options);
    for (;;) {
      const { done, value } = await lines.next();
      if (done) {
        await printer.flush();
        return value > 0 ? 1 : 0;
      }
      await printer.print(value);
    }
  },
});

function checkCombination(
  { dataset, log, verbose }: { readonly dataset: readonly string[]; readonly log: boolean; readonly verbose: boolean },
  slab: object,
): void {
  const [part] = Object.keys(slab);
  if (dataset.length === 0 && part !== undefined) throw new H5LogError('OPTION', `--${part} needs a dataset: -d PATH`);
  if (log && dataset.length > 0)
    throw new H5LogError('OPTION', '--log prints the log, --dataset prints values: give one of them');
  if (verbose && !log) throw new H5LogError('OPTION', '--verbose is for --log');
}

type Lists = Readonly<Record<'start' | 'stride' | 'count' | 'block', string | undefined>>;

function slabFrom(values: Lists): Partial<Record<keyof Lists, number[]>> {
  const slab: Partial<Record<keyof Lists, number[]>> = {};
  for (const name of ['start', 'stride', 'count', 'block'] as const) {
    const text = values[name];
    if (text === undefined) continue;
    if (!/^\d+(\s*,\s*\d+)*$/.test(text.trim()))
      throw new H5LogError('OPTION', `--${name} is a list of whole numbers like 0,10, not ${JSON.stringify(text)}`);
    slab[name] = text.split(',').map(Number);
  }
  return slab;
}

async function printLog(path: string, header: boolean, blocks: number, context: CommandContext): Promise<void> {
  const { dump } = await import('../../tools/dump/dump.ts');
  const { shownText } = await import('../../tools/value-text.ts');
  const printer = new LinePrinter(context);
  // The header is known before the entries are read.
  for (const line of headerLines(await dump(path, { header: true }))) await printer.print(shownText(line));
  if (!header) {
    let shown: DumpedTable | undefined;
    let below: DumpedSection | undefined;
    await dump(path, {
      blocks,
      onEntry: async (entry, section, table) => {
        if (shown !== table) await printer.print(tableLine(table));
        if (shown !== table || below !== section) await printer.print(`  section ${section.number}`);
        [shown, below] = [table, section];
        for (const line of entryLines(entry)) await printer.print(shownText(line));
      },
    });
  }
  await printer.flush();
}

function* headerLines({ file, kind, sequence, configuration, logs: shown, stores }: Dump): Iterable<string> {
  yield `${file}: ${kind}`;
  if (!configuration) {
    yield 'no log in this file';
    return;
  }
  const { config, bits, datasets, subfiles } = configuration;
  yield `configuration     0x${config.toString(16).padStart(3, '0')}${bits.length > 0 ? `: ${bits.join(', ')}` : ''}`;
  yield `datasets created  ${datasets}`;
  yield `last commit       ${sequence}`;
  yield `subfiles          ${configuration.bits.includes('subfiling') ? subfiles : 'none'}`;
  if (shown && isNumbered(shown)) yield `logs              ${logsText(shown)}`;
  for (const { file: name, subfile, logs, tables, records, numbered } of stores) {
    if (subfile !== undefined) yield `subfile ${subfile}         ${name}`;
    yield `log data          ${sizes(logs)}`;
    yield `tables            ${sizes(tables)}`;
    yield `commit records    ${sizes(records)}`;
    for (const log of numbered)
      yield `log ${String(log.number).padEnd(14)}data ${sizes(log.logs)}; tables ${sizes(log.tables)}`;
  }
}

function sizes(list: readonly { readonly bytes: number }[]): string {
  const total = list.reduce((sum, { bytes }) => sum + bytes, 0);
  return list.length === 0 ? 'none' : `${several(list.length, 'dataset')}, ${several(total, 'byte')}`;
}

function tableLine({ subfile, log, number, offset, bytes, merged, sections }: DumpedTable): string {
  const where = subfile === undefined ? '' : ` of subfile ${subfile}`;
  const how = merged ? ', in merge mode' : '';
  const of = log === undefined ? '' : ` of log ${log}`;
  return `table ${number}${of}${where} at ${offset}, ${several(bytes, 'byte')}, ${several(sections.length, 'section')}${how}`;
}

function* entryLines(entry: DumpedEntry): Iterable<string> {
  const { at, size, dataset, path, flagNames, offset, bytes, record, reference, count, blocks, problem } = entry;
  const form = flagNames.length === 0 ? 'single' : flagNames.join(', ');
  const name = path === undefined ? '' : ` ${path}`;
  yield `    entry at ${at}, ${several(size, 'byte')}: dataset ${dataset}${name}, ${form}; data at ${offset}, ${several(bytes, 'byte')}`;
  const facts = [
    ...(record === undefined ? [] : [`record ${record}`]),
    ...(reference === undefined ? [] : [`selection of the entry at ${reference}`]),
    ...(count === 1 ? [] : [several(count, 'block')]),
    ...(problem === undefined ? [] : [problem]),
  ];
  if (facts.length > 0) yield `      ${facts.join(', ')}`;
  for (const block of blocks) yield `      (${block.start.join(', ')}) + (${block.count.join(', ')})`;
  if (blocks.length > 0 && blocks.length < count)
    yield `      ... and ${several(count - blocks.length, 'more', 'more')}`;
}
