import { existsSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import type { ReplayResult } from '../../tools/replay/options.ts';
import { command, json, memory } from '../command.ts';
import { counted, scaled, seconds, several } from '../print.ts';

export default command({
  name: 'replay',
  summary: 'convert a log file to ordinary HDF5',
  details: [
    'Datasets become contiguous; those that have declared chunks or may grow become chunked, with their filters. Groups, attributes and links are copied. OUT appears under its name when it is complete.',
    'The work is divided among threads, or under mpiexec among the ranks of the job.',
  ],
  positionals: [
    { name: 'IN', help: 'the log file' },
    { name: 'OUT', help: 'the new file' },
  ],
  options: {
    jobs: {
      type: 'count',
      short: 'j',
      value: 'N',
      least: 1,
      otherwise: 'the number of cores; 1 for files below 256 MiB',
      help: 'number of threads',
    },
    memory: { ...memory, help: 'memory limit for data and index, of all threads in total' },
    libver: {
      type: 'text',
      value: 'VERSION',
      default: 'latest',
      choices: ['latest', 'earliest'],
      help: 'earliest: for programs that know HDF5 1.8 only, such as netcdf-java',
    },
    force: { type: 'flag', short: 'f', help: 'replace OUT if it exists' },
    json,
  },
  examples: [
    { command: 'replay run.h5 ordinary.h5', says: 'uses all cores' },
    { command: 'replay -j 1 --memory 64MiB run.h5 ordinary.h5', says: 'one thread, little memory' },
    { command: 'mpiexec -n 4 node_modules/.bin/h5log replay run.h5 ordinary.h5', says: 'on four processes of MPI' },
  ],
  async run({ values, positionals, context }) {
    const [input = '', output = ''] = positionals;
    const { comm, progress } = context;
    const { replay } = await import('../../tools/replay/replay.ts');
    const result = await replay(input, output, {
      ...(comm.size > 1
        ? { comm }
        : { threads: values.jobs ?? threadsFor(input), filterModules: context.filterModules }),
      memory: values.memory,
      force: values.force,
      libver: values.libver as 'latest' | 'earliest',
      progress: ({ bytes, total }) => {
        if (total > 0) progress.show(bytes / total, `${scaled(bytes, 'B')} of ${scaled(total, 'B')}`);
      },
    });
    if (comm.rank > 0) return 0;
    if (values.json) context.printJson({ input, output, ...result });
    else for (const line of lines(output, result)) context.print(line);
    return 0;
  },
});

function* lines(output: string, result: ReplayResult): Iterable<string> {
  const { groups, datasets, copied, attributes, elements, dataBytes, bytes } = result;
  yield `${output}: ${several(datasets, 'dataset')} in ${several(groups, 'group')}, ${several(attributes, 'attribute')}, ${several(elements, 'element')}`;
  if (copied > 0) yield `  ${counted(copied)} of the datasets were ordinary ones and copied as they were stored`;
  yield `  ${scaled(dataBytes, 'B')} of data, ${scaled(bytes, 'B')} in all, ${seconds(result.seconds)} (${scaled(dataBytes / result.seconds, 'B/s')})`;
}

/** Starting threads takes as long as one thread needs for a file of this size. */
const SMALL_FILE = 256 * 2 ** 20;

function threadsFor(path: string): number {
  try {
    // The size of the file does not include its subfiles.
    if (!existsSync(`${path}.subfiles`) && statSync(path).size < SMALL_FILE) return 1;
  } catch {
    // Opening the file reports the error.
  }
  return availableParallelism();
}
