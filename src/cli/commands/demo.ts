import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { H5LogError } from '../../base/errors.ts';
import type { DemoReport } from '../../tools/demo/demo.ts';
import { command, json } from '../command.ts';
import { sharedFolder } from '../context.ts';
import { counted, scaled, seconds, several } from '../print.ts';

export default command({
  name: 'demo',
  summary: 'write a field on several ranks, read it back, check every value',
  details: [
    'Each rank owns a tile of a square field. In every step it writes the tile and one row or column of each neighbour (the halo), row by row, and all ranks flush collectively. ' +
      'Where writes overlap, the higher rank must win. Ranks are threads, or under mpiexec the ranks of the job. The file of threads without subfiles is published in the end: every HDF5 program reads it.',
  ],
  options: {
    ranks: {
      type: 'count',
      value: 'N',
      least: 1,
      otherwise: 'the number of cores',
      help: 'number of threads that write',
    },
    steps: { type: 'count', value: 'N', least: 1, default: 10, help: 'time steps, one commit each' },
    size: { type: 'count', value: 'N', least: 1, default: 512, help: 'width and height of the field in elements' },
    subfiles: { type: 'count', value: 'N', default: 0, help: 'number of subfiles for the data; 0: none' },
    storage: {
      type: 'text',
      value: 'HOW',
      choices: ['node', 'mpi-io'],
      default: 'node',
      help: 'how ranks write; mpi-io only under mpiexec',
    },
    out: { type: 'text', value: 'FILE', otherwise: 'a temporary file', help: 'keep the file under this name' },
    check: { type: 'text', value: 'FILE', help: 'write nothing; check a file that demo --out wrote' },
    json,
  },
  examples: [
    { command: 'demo --ranks 4 --size 1000 --out field.h5', says: 'four threads; field.h5 is kept' },
    {
      command: 'mpiexec -n 4 node_modules/.bin/h5log demo',
      says: 'on four MPI processes; with Open MPI, npx h5log works too',
    },
  ],
  async run({ values, context }) {
    const { ranks, steps, size, subfiles, out, check } = values;
    const { comm, progress } = context;
    if (out !== undefined && check !== undefined)
      throw new H5LogError('OPTION', '--check writes nothing; it cannot be combined with --out');
    if (ranks !== undefined && comm.size > 1 && ranks !== comm.size)
      throw new H5LogError('OPTION', `--ranks ${ranks} is for threads; mpiexec has started ${comm.size} ranks`);
    if (check !== undefined && !existsSync(check))
      throw new H5LogError('NOT_FOUND', `${check} does not exist`, { file: check });
    const begun = performance.now();
    const { demo } = await import('../../tools/demo/demo.ts');
    const path = check ?? out ?? join(sharedFolder(comm), 'field.h5');
    const report = await demo(path, {
      ...(comm.size > 1 ? { comm } : { ranks: ranks ?? availableParallelism() }),
      ...{ steps, size, subfiles, check: check !== undefined },
      storage: values.storage === 'mpi-io' ? 'mpi-io' : 'node',
      onProgress: (done, of) => {
        if (of > 0)
          progress.show(
            done / of,
            `${done <= steps ? 'writing' : 'checking'}, step ${done <= steps ? done : done - steps} of ${steps}`,
          );
      },
    });
    // Other programs know nothing of subfiles; processes of MPI may not have closed the file yet.
    const isShown = check === undefined && subfiles === 0 && comm.size === 1;
    if (isShown) {
      const { publish } = await import('../../tools/publish/publish.ts');
      await publish(path);
    }
    const total = (performance.now() - begun) / 1000;
    if (values.json) context.printJson({ ...report, seconds: total, ...(out !== undefined && { file: out }) });
    else {
      for (const line of lines(report, total, out)) context.print(line);
      if (isShown) for (const line of inPython(out)) context.print(line);
    }
    return report.wrong === 0 ? 0 : 1;
  },
});

/** What to try next: the file is published. */
function* inPython(out: string | undefined): Iterable<string> {
  yield out === undefined
    ? 'next      h5log demo --out field.h5 keeps the file; then in Python:'
    : 'next      in Python:';
  yield '            import h5py';
  yield `            field = h5py.File(${JSON.stringify(out ?? 'field.h5')})['field']`;
  yield '            print(field.shape, field[-1].max())';
}

const KINDS = { solo: 'rank', threads: 'thread', mpi: 'rank' };

function* lines(report: DemoReport, total: number, out: string | undefined): Iterable<string> {
  const { kind, ranks, grid, size, steps, subfiles, requests, bytes, wrong, firstWrong } = report;
  const files = subfiles ? `, ${several(subfiles, 'subfile')}` : '';
  yield `${several(ranks, KINDS[kind])}${kind === 'mpi' ? ' of MPI' : ''}, ${grid.join(' x ')} tiles, field ${size} x ${size}, ${several(steps, 'step')}${files}`;
  if (requests > 0) {
    const { postSeconds, flushSeconds, written } = report;
    yield `posted    ${several(requests, 'request')}, ${scaled(bytes, 'B')} in ${seconds(postSeconds)}: ${scaled(requests / postSeconds, 'requests/s')}, ${scaled(bytes / postSeconds, 'B/s')}`;
    yield `flushed   ${several(steps, 'commit')}, ${scaled(written, 'B')} in ${seconds(flushSeconds)}: ${scaled(written / flushSeconds, 'B/s')}`;
  }
  yield `verified  ${several(report.verified, 'element')} in ${seconds(report.verifySeconds)}: ${wrong === 0 ? 'all right' : `${counted(wrong)} WRONG`}`;
  if (firstWrong) {
    const { step, row, column, expected, found } = firstWrong;
    yield `          the first at step ${step}, row ${row}, column ${column}: ${found}, not ${expected}`;
  }
  yield `total     ${seconds(total)}`;
  if (out !== undefined) yield `file      ${out}`;
}
