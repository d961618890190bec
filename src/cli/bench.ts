import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { H5LogError } from '../errors.ts';
import type { E3smReport, E3smTimes } from '../tools/bench/e3sm.ts';
import { command, json } from './command.ts';
import { counted, seconds, several } from './figures.ts';
import { makeFolder, sharedFolder } from './shared-folder.ts';

const MIB = 2 ** 20;

export default command({
  name: 'bench',
  summary: 'measure how fast a known workload is written and read',
  details: [
    'e3sm: the files of the E3SM climate model. Headers are CDL texts, as ncdump -h prints them, a file each; the map, an HDF5 file of E3SM-IO, says which process writes which ' +
      'elements of a variable. Every variable becomes a dataset with its attributes; then all is posted, flushed, closed. Times are those of the slowest rank: of the first time (cold), and the ' +
      'median of the later ones (warm). Ranks are threads, or under mpiexec the ranks of the job.',
  ],
  positionals: [{ name: 'WORKLOAD', help: 'e3sm' }],
  options: {
    header: { type: 'text', value: 'FILE', many: true, help: 'the CDL header of a file' },
    map: { type: 'text', value: 'FILE', help: 'who writes what: an HDF5 file' },
    generate: { type: 'flag', help: 'make up what is not given: a map, and with it a header' },
    records: {
      type: 'text',
      value: 'N,...',
      otherwise: 'what the headers say',
      help: 'records of each file; the last number is for all that follow',
    },
    dim: { type: 'text', value: 'NAME=SIZE', many: true, help: 'another size of a dimension than in the header' },
    double: { type: 'flag', help: 'write float variables as float64' },
    ranks: { type: 'count', value: 'N', least: 1, otherwise: '1', help: 'threads to write from' },
    read: { type: 'flag', help: 'read everything back and check every value' },
    repeat: { type: 'count', value: 'N', least: 1, default: 5, help: 'how often to do it all' },
    lend: { type: 'flag', help: 'posts do not copy the data; the buffers are lent until the flush' },
    'no-compress': { type: 'flag', help: 'leave the metadata tables uncompressed' },
    out: { type: 'text', value: 'DIR', otherwise: 'a temporary one', help: 'keep the files, in this directory' },
    json,
  },
  examples: [
    {
      command: 'bench e3sm --generate --ranks 2 --read',
      says: 'without any file: a header and a map that are made up',
    },
    {
      command: 'bench e3sm --header h0.txt --header h1.txt --map map.h5 --double --records 1,2',
      says: 'the published benchmark of the F case, 33.4 MiB',
    },
  ],
  async run({ values, positionals, around }) {
    const { header, map, generate, ranks, read, repeat, double } = values;
    const { comm } = around;
    const [workload] = positionals;
    if (workload !== 'e3sm') throw new H5LogError('OPTION', `there is a workload e3sm, but no ${workload}`);
    if (ranks !== undefined && comm.size > 1 && ranks !== comm.size)
      throw new H5LogError('OPTION', `--ranks ${ranks} is for threads; mpiexec has started ${comm.size} ranks`);
    if (map === undefined && !generate)
      throw new H5LogError('OPTION', '--map is missing: who writes what; or --generate makes one up');
    if (header.length === 0 && !(generate && map === undefined))
      throw new H5LogError('OPTION', '--header is missing: what to write; or --generate makes up both it and a map');
    const headers = header.map((path) => readText(path));
    const records = values.records === undefined ? [] : values.records.split(',').map(count);
    const sizes = Object.fromEntries(values.dim.map(dimension));
    if (values.out !== undefined) makeFolder(comm, values.out);
    const folder = values.out ?? sharedFolder(comm);
    const names = header.length === 0 ? ['generated'] : header.map((path) => basename(path).replace(/\.[^.]*$/, ''));
    const paths = names.map((name, i) => join(folder, `${names.indexOf(name) === i ? name : `${name}-${i}`}.h5`));
    const { e3sm } = await import('../tools/bench/e3sm.ts');
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
    if (values.json) around.printJson({ ...report, cold, ...(warm && { warm }), peakMemory: memory });
    else for (const line of lines(report, cold, warm, memory as number)) around.print(line);
    return report.wrong === 0 ? 0 : 1;
  },
});

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

/** Bytes; resourceUsage() is not asked, its maximum may go on from that of the process that started this one. */
function peakMemory(): number {
  try {
    const [, kilobytes] = /VmHWM:\s*(\d+)/.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
    if (kilobytes !== undefined) return Number(kilobytes) * 1024;
  } catch {
    // Another system than Linux.
  }
  return process.resourceUsage().maxRSS * 1024;
}

const PHASES = ['open', 'define', 'post', 'flush', 'close', 'total', 'read'] as const;

function medians(times: readonly E3smTimes[]): E3smTimes {
  const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] as number;
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
