import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { H5LogError } from '../../base/errors.ts';
import type { E3smReport, E3smTimes } from '../../bench/e3sm.ts';
import { type Figure, median, peakMemory } from '../../bench/workload.ts';
import type { Options, Values } from '../command.ts';
import type { CommandContext } from '../context.ts';
import { counted, seconds, several } from '../print.ts';

const MIB = 2 ** 20;

/** Options of the workload e3sm only. */
export const e3smOptions = {
  header: { type: 'text', value: 'FILE', many: true, help: 'e3sm: CDL header of a file to write' },
  map: { type: 'text', value: 'FILE', help: 'e3sm: HDF5 file that says which process writes what' },
  generate: { type: 'flag', help: 'e3sm: generate a map if none is given, and a header for it' },
  records: {
    type: 'text',
    value: 'N,...',
    otherwise: 'as in the headers',
    help: 'e3sm: number of records of each file; the last number applies to all further files',
  },
  dim: { type: 'text', value: 'NAME=SIZE', many: true, help: 'e3sm: override the size of a dimension of the headers' },
  double: { type: 'flag', help: 'e3sm: write float variables as float64' },
  ranks: { type: 'count', value: 'N', least: 1, otherwise: '1', help: 'e3sm: number of threads that write' },
  read: { type: 'flag', help: 'e3sm: read everything back and check every value' },
  lend: { type: 'flag', help: 'e3sm: lend the buffers until the flush instead of copying the data' },
  netcdf: { type: 'flag', help: 'e3sm: define the dimensions and coordinates of netCDF, too' },
  'no-compress': { type: 'flag', help: 'e3sm: leave the metadata tables uncompressed' },
} as const satisfies Options;

/** The result: `facts` for --json, `lines` to print, and `figures` with the main one. */
export interface E3smOutcome {
  readonly facts: object;
  readonly lines: readonly string[];
  readonly figures: readonly Figure[];
  readonly isRight: boolean;
}

/** Checks the options before anything is written. */
export function checkE3sm(
  { header, map, generate, ranks }: Values<typeof e3smOptions>,
  { comm }: CommandContext,
): void {
  if (ranks !== undefined && comm.size > 1 && ranks !== comm.size)
    throw new H5LogError('OPTION', `--ranks ${ranks} is for threads; mpiexec has started ${comm.size} ranks`);
  if (map === undefined && !generate)
    throw new H5LogError('OPTION', '--map is missing: which process writes what; --generate generates one');
  if (header.length === 0 && !(generate && map === undefined))
    throw new H5LogError('OPTION', '--header is missing: what to write; --generate without --map generates both');
}

/** Writes the files of E3SM into `folder`, which is the same on all ranks. */
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
  const directory = folder();
  const names = header.length === 0 ? ['generated'] : header.map((path) => basename(path).replace(/\.[^.]*$/, ''));
  const paths = names.map((name, i) => join(directory, `${names.indexOf(name) === i ? name : `${name}-${i}`}.h5`));
  const { e3sm } = await import('../../bench/e3sm.ts');
  const report = await e3sm(paths, {
    ...(header.length > 0 && { headers }),
    ...(map !== undefined && { map }),
    ...(comm.size > 1 ? { comm } : { ranks: ranks ?? 1 }),
    ...(values['no-compress'] && { compress: false }),
    ...{ records, sizes, double, read, repeat, copy: !values.lend, netcdf: values.netcdf },
  });
  // The maximum over all processes.
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

/** Id of the main figure. */
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
  throw new H5LogError('OPTION', `--records is a list of whole numbers, such as 1,2; ${text} is not a whole number`);
}

function dimension(text: string): [string, number] {
  const [, name, size] = /^(.+)=(\d+)$/.exec(text) ?? [];
  if (name === undefined) throw new H5LogError('OPTION', `--dim is a name and a size, such as ncol=866, not ${text}`);
  return [name, Number(size)];
}

const PHASES = ['open', 'define', 'post', 'flush', 'close', 'total', 'plain', 'read'] as const;

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
  if (ranks > 1) {
    const [{ collectives }] = files as readonly [E3smReport['files'][0]];
    const counts = Object.entries(collectives).map(([phase, number]) => `${phase} ${number}`);
    yield `collectives of a file: ${counts.join(', ')}`;
  }
  if (cold.read === undefined) return;
  yield `verified  ${several(report.verified, 'element')}: ${wrong === 0 ? 'all right' : `${counted(wrong)} WRONG`}`;
  if (firstWrong) {
    const { file, variable, record, position, expected, found } = firstWrong;
    yield `          the first in ${basename(file)}, ${variable}, record ${record}, element ${position}: ${found}, not ${expected}`;
  }
}
