import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { H5LogError } from '../../base/errors.ts';
import type { E3smReport, E3smTimes } from '../../bench/e3sm.ts';
import { type Figure, median, peakMemory } from '../../bench/workload.ts';
import type { Options, Values } from '../command.ts';
import type { CommandContext } from '../context.ts';
import { counted, seconds, several } from '../print.ts';

const MIB = 2 ** 20;

/** Options that only this workload has. */
export const e3smOptions = {
  header: { type: 'text', value: 'FILE', many: true, help: 'e3sm: the CDL header of a file' },
  map: { type: 'text', value: 'FILE', help: 'e3sm: who writes what: an HDF5 file' },
  generate: { type: 'flag', help: 'e3sm: make up what is not given: a map, and with it a header' },
  records: {
    type: 'text',
    value: 'N,...',
    otherwise: 'what the headers say',
    help: 'e3sm: records of each file; the last number is for all that follow',
  },
  dim: { type: 'text', value: 'NAME=SIZE', many: true, help: 'e3sm: another size of a dimension than in the header' },
  double: { type: 'flag', help: 'e3sm: write float variables as float64' },
  ranks: { type: 'count', value: 'N', least: 1, otherwise: '1', help: 'e3sm: threads to write from' },
  read: { type: 'flag', help: 'e3sm: read everything back and check every value' },
  lend: { type: 'flag', help: 'e3sm: posts do not copy the data; the buffers are lent until the flush' },
  'no-compress': { type: 'flag', help: 'e3sm: leave the metadata tables uncompressed' },
} as const satisfies Options;

/** What was measured: for programs, for people, and the one number that stands for it. */
export interface E3smOutcome {
  readonly facts: object;
  readonly lines: readonly string[];
  readonly figures: readonly Figure[];
  readonly isRight: boolean;
}

/** Says what is wrong with the options, before anything is done. */
export function checkE3sm(
  { header, map, generate, ranks }: Values<typeof e3smOptions>,
  { comm }: CommandContext,
): void {
  if (ranks !== undefined && comm.size > 1 && ranks !== comm.size)
    throw new H5LogError('OPTION', `--ranks ${ranks} is for threads; mpiexec has started ${comm.size} ranks`);
  if (map === undefined && !generate)
    throw new H5LogError('OPTION', '--map is missing: who writes what; or --generate makes one up');
  if (header.length === 0 && !(generate && map === undefined))
    throw new H5LogError('OPTION', '--header is missing: what to write; or --generate makes up both it and a map');
}

/** The files that E3SM writes, in `folder`, which all ranks call by the same name. */
export async function benchE3sm(
  values: Values<typeof e3smOptions>,
  repeat: number,
  folder: () => string,
  { comm }: CommandContext,
): Promise<E3smOutcome> {
  const { header, map, ranks, read, double } = values;
  const headers = header.map((path) => readText(path));
  const records = values.records === undefined ? [] : values.records.split(',').map(count);
  const sizes = Object.fromEntries(values.dim.map(dimension));
  const place = folder();
  const names = header.length === 0 ? ['generated'] : header.map((path) => basename(path).replace(/\.[^.]*$/, ''));
  const paths = names.map((name, i) => join(place, `${names.indexOf(name) === i ? name : `${name}-${i}`}.h5`));
  const { e3sm } = await import('../../bench/e3sm.ts');
  const report = await e3sm(paths, {
    ...(header.length > 0 && { headers }),
    ...(map !== undefined && { map }),
    ...(comm.size > 1 ? { comm } : { ranks: ranks ?? 1 }),
    ...(values['no-compress'] && { compress: false }),
    ...{ records, sizes, double, read, repeat, copy: !values.lend },
  });
  // Of processes that share a machine each has its own.
  const [memory] = comm.allreduce(Float64Array.of(peakMemory()), 'max');
  const [cold, ...later] = report.times as readonly [E3smTimes, ...E3smTimes[]];
  const warm = later.length > 0 ? medians(later) : undefined;
  const total = (warm ?? cold).total;
  return {
    facts: { ...report, cold, ...(warm && { warm }), peakMemory: memory },
    lines: [...lines(report, cold, warm, memory as number)],
    figures: [
      { id: E3SM_HEADLINE, what: `E3SM, ${warm ? 'warm' : 'cold'}, from open to close`, value: total, unit: 's' },
    ],
    isRight: report.wrong === 0,
  };
}

/** The figure that stands for the whole. */
export const E3SM_HEADLINE = 'e3sm/total';

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw new H5LogError('NOT_FOUND', `${path} cannot be read: ${(cause as Error).message}`, { file: path, cause });
  }
}

function count(text: string): number {
  if (/^\d+$/.test(text.trim())) return Number(text);
  throw new H5LogError('OPTION', `--records is a list of whole numbers, such as 1,2, and ${text} is none`);
}

function dimension(text: string): [string, number] {
  const [, name, size] = /^(.+)=(\d+)$/.exec(text) ?? [];
  if (name === undefined) throw new H5LogError('OPTION', `--dim is a name and a size, such as ncol=866, not ${text}`);
  return [name, Number(size)];
}

const PHASES = ['open', 'define', 'post', 'flush', 'close', 'total', 'read'] as const;

function medians(times: readonly E3smTimes[]): E3smTimes {
  const found = PHASES.map((phase) => [phase, median(times.map((one) => one[phase] ?? 0))] as const);
  const all = Object.fromEntries(found) as unknown as Required<E3smTimes>;
  const { read, ...written } = all;
  return times[0]?.read === undefined ? written : all;
}

const KINDS = { solo: 'rank', threads: 'thread', mpi: 'rank' };

function* lines(report: E3smReport, cold: E3smTimes, warm: E3smTimes | undefined, memory: number): Iterable<string> {
  const { kind, ranks, files, times, wrong, firstWrong, prepareSeconds } = report;
  yield `${several(ranks, KINDS[kind])}${kind === 'mpi' ? ' of MPI' : ''}, ${several(times.length, 'repetition')}, prepared in ${seconds(prepareSeconds)}`;
  for (const { path, variables, records, requests, bytes, tableBytes, fileBytes } of files) {
    yield `${basename(path)}: ${several(variables, 'variable')}, ${several(records, 'record')}, ${several(requests, 'request')}, ` +
      `${(bytes / MIB).toFixed(1)} MiB; tables ${counted(tableBytes)} bytes, file ${counted(fileBytes)} bytes`;
  }
  const sum = (of: 'requests' | 'bytes'): number => files.reduce((total, file) => total + file[of], 0);
  yield `${several(sum('requests'), 'request')}, ${(sum('bytes') / MIB).toFixed(1)} MiB; peak memory ${(memory / MIB).toFixed(0)} MiB`;
  const shown = PHASES.filter((phase) => cold[phase] !== undefined);
  yield `${''.padEnd(6)}${shown.map((phase) => phase.padStart(10)).join('')}`;
  for (const [name, row] of [['cold', cold] as const, ...(warm ? [['warm', warm] as const] : [])])
    yield `${name.padEnd(6)}${shown.map((phase) => seconds(row[phase] ?? 0).padStart(10)).join('')}`;
  if (cold.read === undefined) return;
  yield `verified  ${several(report.verified, 'element')}: ${wrong === 0 ? 'all right' : `${counted(wrong)} WRONG`}`;
  if (firstWrong) {
    const { file, variable, record, position, expected, found } = firstWrong;
    yield `          the first in ${basename(file)}, ${variable}, record ${record}, element ${position}: ${found}, not ${expected}`;
  }
}
