import { writeFileSync } from 'node:fs';
import { H5LogError } from '../../base/errors.ts';
import type { FlushStat, Stat } from '../../tools/stat/stat.ts';
import { command, json } from '../command.ts';
import { columns, counted, isNumbered, LinePrinter, logsText, scaled, several } from '../print.ts';

/** Lines for flushes; if there are more flushes, consecutive ones share a line. */
const FLUSH_LINES = 16;
const BAR = 24;

export default command({
  name: 'stat',
  summary: 'print statistics of a file by dataset, of a log also by rank and flush; plot blocks',
  details: [
    'Overlap is data that newer writes hide. Dead is all data in the file that no read needs: overlap, data cut off by a smaller shape, deleted datasets. Requests are counted per commit; ' +
      'what a rank posts to a dataset for a flush becomes one entry or a few, so datasets show entries. In files of the original log VOL, ranks are the sections of tables and flushes are log datasets.',
    'Of a published file: the commit that other programs see, how many bytes of its layouts are shared with the log, how many were copied, and how many copies have been replaced since.',
    'Of an ordinary dataset: how it is stored, how many chunks it has, the bytes of its data in the file, and the bytes of its elements.',
    '--plot draws the last two dimensions, or a single dimension with a lane for each rank or flush.',
  ],
  positionals: [{ name: 'FILE', help: 'a log or an ordinary file' }],
  options: {
    dataset: {
      type: 'text',
      short: 'd',
      value: 'PATH',
      otherwise: 'all; for --plot the one with the most blocks',
      help: 'only this dataset',
    },
    plot: { type: 'text', value: 'OUT.svg', help: 'plot the blocks of a dataset' },
    by: {
      type: 'text',
      value: 'WHAT',
      choices: ['rank', 'flush'],
      default: 'rank',
      help: 'meaning of the colours in the plot',
    },
    verbose: { type: 'flag', short: 'v', help: 'print datasets by rank, and every flush' },
    json,
  },
  examples: [
    { command: 'stat run.h5', says: 'tables of datasets, ranks and flushes' },
    { command: 'stat --plot blocks.svg --dataset /T --by flush run.h5', says: 'also plots the blocks of /T' },
  ],
  async run({ values, positionals, context }) {
    if (context.comm.rank > 0) return 0;
    const path = positionals[0] as string;
    const { stat } = await import('../../tools/stat/stat.ts');
    const { dataset, plot, verbose } = values;
    const report = await stat(path, dataset === undefined ? {} : { dataset });
    if (plot !== undefined) {
      const { plotBlocks } = await import('../../tools/dump/plot.ts');
      const by = values.by === 'flush' ? 'flush' : 'rank';
      const { svg } = await plotBlocks(path, { by, ...(dataset !== undefined && { dataset }) });
      save(plot, svg);
    }
    if (values.json) {
      context.printJson(report);
      return 0;
    }
    const { shownText } = await import('../../tools/value-text.ts');
    const printer = new LinePrinter(context);
    for (const line of lines(report, verbose)) await printer.print(shownText(line));
    if (plot !== undefined) await printer.print(`plot        ${plot}`);
    await printer.flush();
    return 0;
  },
});

function save(path: string, text: string): void {
  try {
    writeFileSync(path, text);
  } catch (error) {
    throw new H5LogError('STORAGE', `${path} cannot be written: ${(error as Error).message}`, {
      file: path,
      cause: error,
    });
  }
}

/** An ordinary file, and the ordinary datasets of a log. */
function* ordinaryLines({ ordinary }: Stat): Iterable<string> {
  yield* columns([
    ['dataset', 'shape', 'type', 'layout', 'chunks', 'bytes', 'of'],
    ...ordinary.map(({ path, shape, dtype, layout, chunks, bytes, size }) => [
      path,
      shape === null ? 'null' : shape.length === 0 ? 'scalar' : shape.join(' x '),
      brief(dtype),
      layout,
      chunks === undefined ? '' : counted(chunks),
      counted(bytes),
      counted(size),
    ]),
  ]);
}

function* lines(report: Stat, verbose: boolean): Iterable<string> {
  if (report.tables.count > 0 || report.datasets.length > 0 || report.flushes.length > 0)
    yield* logLines(report, verbose);
  else {
    const { file, size, data, structure } = report;
    yield `${file}: ${scaled(size, 'B')}, no log`;
    yield `data        ${scaled(data.bytes, 'B')}`;
    yield `structure   ${scaled(structure, 'B')}, free space included`;
  }
  if (report.ordinary.length === 0) return;
  yield '';
  yield* ordinaryLines(report);
}

function* logLines(report: Stat, verbose: boolean): Iterable<string> {
  const { file, size, subfiles, requests, data, tables, structure, datasets, ranks, flushes, logs, published } = report;
  const files = subfiles === 0 ? '' : ` with ${several(subfiles, 'subfile')}`;
  yield `${file}: ${scaled(size, 'B')}${files}, ${several(flushes.length, 'flush', 'flushes')}, ${several(requests, 'request')} on record`;
  yield `data        ${scaled(data.bytes, 'B')}: ${scaled(data.live, 'B')} live, ${scaled(data.dead, 'B')} dead`;
  if (logs && isNumbered(logs)) yield `logs        ${logsText(logs)}`;
  if (published) {
    const { sequence, shared, copied, dead } = published;
    yield `published   commit ${sequence}: ${scaled(shared, 'B')} shared with the log, ${scaled(copied, 'B')} copied, ${scaled(dead, 'B')} of older copies dead`;
  }
  yield `structure   ${scaled(structure, 'B')}, tables included`;
  yield `tables      ${tables.count} of ${several(tables.bytes, 'byte')}, ${counted(tables.header)} of them headers`;
  const { record, ...forms } = tables.forms;
  for (const [form, { entries, bytes }] of Object.entries(forms)) {
    if (entries > 0)
      yield `            ${form.padEnd(10)}  ${several(entries, 'entry', 'entries')}, ${several(bytes, 'byte')}`;
  }
  if (record.entries > 0)
    yield `            of these, ${several(record.entries, 'entry', 'entries')} of one record, ${several(record.bytes, 'byte')}`;
  yield '';
  yield* columns([
    ['dataset', 'shape', 'type', 'entries', 'blocks', 'bytes', 'overlap', 'dead', ...(published ? ['published'] : [])],
    ...datasets.flatMap(
      ({ path, shape, dtype, entries, blocks, bytes, overlap, dead, ranks: parts, published: view }) => [
        [
          path,
          shape.length === 0 ? 'scalar' : shape.join(' x '),
          brief(dtype),
          ...[entries, blocks, bytes, overlap, dead].map(counted),
          ...(published ? [view ? `${view.sequence}, ${view.way}` : 'never'] : []),
        ],
        ...(verbose
          ? parts.map((part) => [
              `  ${rankName(part.rank)}`,
              '',
              '',
              ...[part.entries, part.blocks, part.bytes].map(counted),
            ])
          : []),
      ],
    ),
  ]);
  yield '';
  yield* columns([
    ['rank', 'entries', 'blocks', 'bytes'],
    ...ranks.map(({ rank, entries, blocks, bytes }) => [rankName(rank), ...[entries, blocks, bytes].map(counted)]),
  ]);
  if (flushes.length === 0) return;
  yield '';
  yield* flushLines(verbose ? flushes.map((flush) => [flush]) : grouped(flushes));
}

const rankName = (rank: number): string => (rank < 0 ? 'unknown' : `rank ${rank}`);

function brief(text: string): string {
  return text.length <= 24 ? text : `${text.slice(0, 21)}...`;
}

/** Groups consecutive flushes, so that there are at most FLUSH_LINES groups. */
function grouped(flushes: readonly FlushStat[]): FlushStat[][] {
  const size = Math.ceil(flushes.length / FLUSH_LINES);
  return Array.from({ length: Math.ceil(flushes.length / size) }, (_, i) => flushes.slice(i * size, (i + 1) * size));
}

function flushLines(groups: readonly (readonly FlushStat[])[]): string[] {
  const sums = groups.map((group) => ({
    first: group[0] as FlushStat,
    last: group.at(-1) as FlushStat,
    data: group.reduce((sum, { data }) => sum + data, 0),
    bytes: group.reduce((sum, { bytes }) => sum + bytes, 0),
    requests: group.reduce((sum, { requests = 0 }) => sum + requests, 0),
  }));
  const most = Math.max(1, ...sums.map(({ bytes }) => bytes));
  return columns([
    ['flush', 'time', 'requests', 'data', 'bytes', ''],
    ...sums.map(({ first, last, data, bytes, requests }) => [
      first === last ? String(first.sequence) : `${first.sequence} to ${last.sequence}`,
      first.time ?? '',
      first.requests === undefined ? '' : counted(requests),
      counted(data),
      counted(bytes),
      '#'.repeat(Math.ceil((bytes / most) * BAR)).padEnd(BAR),
    ]),
  ]);
}
