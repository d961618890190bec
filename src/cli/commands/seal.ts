import { H5LogError } from '../../base/errors.ts';
import type { SealResult } from '../../tools/seal/seal.ts';
import { command, json } from '../command.ts';
import { columns, counted, scaled, seconds, several } from '../print.ts';

export default command({
  name: 'seal',
  summary: 'convert a log file to ordinary HDF5 in place, moving as little data as possible',
  details: [
    'A dataset that is one block becomes contiguous. Blocks on a grid become chunks, with an index that points into the log. A dataset of few blocks becomes a virtual dataset. Only the rest is copied ' +
      'to the end of the file. One atomic commit makes the change: until then the file is the log that it was.',
    'A sealed file has no log and no earlier commits; h5log writes to it as to any ordinary file.',
  ],
  positionals: [{ name: 'FILE', help: 'the log file' }],
  options: {
    to: { type: 'text', value: 'OUT', help: 'write a sealed copy and do not change FILE' },
    force: { type: 'flag', short: 'f', help: 'replace OUT if it exists' },
    json,
  },
  examples: [
    { command: 'seal run.h5', says: 'run.h5 becomes ordinary HDF5' },
    { command: 'seal run.h5 --to ordinary.h5', says: 'writes a copy; run.h5 may be in use' },
  ],
  async run({ values, positionals, context }) {
    const [path = ''] = positionals;
    const { to, force } = values;
    if (context.comm.size > 1) throw new H5LogError('OPTION', 'seal runs in one process; start it without mpiexec');
    const begun = performance.now();
    const { seal } = await import('../../tools/seal/seal.ts');
    const result = await seal(path, {
      ...(to === undefined ? {} : { to }),
      force,
      progress: ({ done, total, dataset }) => context.progress.show(done / total, dataset),
    });
    const took = (performance.now() - begun) / 1000;
    if (values.json) context.printJson({ ...result, seconds: took });
    else for (const line of lines(result, took)) context.print(line);
    return 0;
  },
});

const HEAD = ['dataset', 'way', 'pieces', 'moved'] as const;

function* lines({ path, datasets, moved }: SealResult, took: number): Iterable<string> {
  const rows = datasets.map((each) => [each.path, each.way, counted(each.pieces), scaled(each.moved, 'B')]);
  if (rows.length > 0) yield* columns([HEAD, ...rows], 2);
  yield `${path}: ${several(datasets.length, 'dataset')} sealed, ${scaled(moved, 'B')} moved, ${seconds(took)}`;
}
