import { H5LogError } from '../../base/errors.ts';
import type { Dump, DumpedEntry, DumpedSection, DumpedTable } from '../../tools/dump/dump.ts';
import { command, json } from '../command.ts';
import type { CommandContext } from '../context.ts';
import { LinePrinter, several } from '../print.ts';

/** Blocks of an entry that are printed without -v. */
const SHOWN_BLOCKS = 4;

export default command({
  name: 'dump',
  summary: 'print the internals of a log, or the values of a dataset',
  details: [
    'Without -d: the configuration of the log and its tables with their sections and entries, like h5ldump of the original log VOL. With -d: type, shape, values and attributes of a dataset, ' +
      'like h5dump; of a log, the newest values. Compounds are printed on one line, and numbers with as many digits as they need. Large datasets are read in parts.',
    'LIST is a number for each dimension, separated by commas.',
  ],
  positionals: [{ name: 'FILE', help: 'a file' }],
  options: {
    header: { type: 'flag', short: 'H', help: 'print no table entries; with -d no values' },
    kind: {
      type: 'flag',
      short: 'k',
      help: 'print only the kind of file: HDF5, HDF5-LogVOL, NetCDF-4, NetCDF classic ...',
    },
    verbose: { type: 'flag', short: 'v', help: `print all blocks of an entry, not only the first ${SHOWN_BLOCKS}` },
    dataset: { type: 'text', short: 'd', value: 'PATH', many: true, help: 'print this dataset' },
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
    json,
  },
  examples: [
    { command: 'dump -H run.h5', says: 'configuration and sizes of the log' },
    { command: 'dump -v run.h5', says: 'every entry of every table, with all blocks' },
    { command: 'dump -d /atm/T -s 0,0,0 -c 1,1,10 run.h5', says: 'the first ten values' },
    { command: 'dump -k run.h5', says: 'the kind of file' },
  ],
  async run({ values, positionals, context }) {
    if (context.comm.rank > 0) return 0;
    const path = positionals[0] as string;
    const slab = slabFrom(values);
    if (values.dataset.length === 0 && Object.keys(slab).length > 0)
      throw new H5LogError('OPTION', `--${Object.keys(slab)[0]} needs a dataset: -d PATH`);
    if (values.kind) {
      const { fileKind } = await import('../../tools/inside.ts');
      const kind = await fileKind(path);
      if (values.json) context.printJson({ file: path, kind });
      else context.print(kind);
    } else if (values.dataset.length > 0) {
      const { datasetJson, datasetLines } = await import('../../tools/dump/dataset.ts');
      const options = { datasets: values.dataset, slab, header: values.header };
      const printer = new LinePrinter(context);
      for await (const line of values.json ? datasetJson(path, options) : datasetLines(path, options))
        await printer.print(line);
      await printer.flush();
    } else if (values.json) {
      const { dump } = await import('../../tools/dump/dump.ts');
      context.printJson(await dump(path, { header: values.header }));
    } else await printLog(path, values.header, values.verbose ? Infinity : SHOWN_BLOCKS, context);
    return 0;
  },
});

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

function* headerLines({ file, kind, sequence, configuration, stores }: Dump): Iterable<string> {
  yield `${file}: ${kind}`;
  if (!configuration) {
    yield 'no log in this file; -d PATH prints a dataset';
    return;
  }
  const { config, bits, datasets, subfiles } = configuration;
  yield `configuration     0x${config.toString(16).padStart(3, '0')}${bits.length > 0 ? `: ${bits.join(', ')}` : ''}`;
  yield `datasets created  ${datasets}`;
  yield `last commit       ${sequence}`;
  yield `subfiles          ${configuration.bits.includes('subfiling') ? subfiles : 'none'}`;
  for (const { file: name, subfile, logs, tables, records } of stores) {
    if (subfile !== undefined) yield `subfile ${subfile}         ${name}`;
    yield `log data          ${sizes(logs)}`;
    yield `tables            ${sizes(tables)}`;
    yield `commit records    ${sizes(records)}`;
  }
}

function sizes(list: readonly { readonly bytes: number }[]): string {
  const total = list.reduce((sum, { bytes }) => sum + bytes, 0);
  return list.length === 0 ? 'none' : `${several(list.length, 'dataset')}, ${several(total, 'byte')}`;
}

function tableLine({ subfile, number, offset, bytes, merged, sections }: DumpedTable): string {
  const where = subfile === undefined ? '' : ` of subfile ${subfile}`;
  const how = merged ? ', in merge mode' : '';
  return `table ${number}${where} at ${offset}, ${several(bytes, 'byte')}, ${several(sections.length, 'section')}${how}`;
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
