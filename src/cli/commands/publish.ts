import { H5LogError } from '../../base/errors.ts';
import type { publish } from '../../tools/publish/publish.ts';
import { command, json } from '../command.ts';
import { columns, scaled, seconds, several } from '../print.ts';

export default command({
  name: 'publish',
  summary: 'make every HDF5 program see what a log holds; the log stays',
  details: [
    'Datasets get ordinary layouts, which point at bytes of the log where HDF5 can; only the rest is copied to the end of the file. What was published before is brought up to date: that costs what changed since. One atomic commit ' +
      'makes the change.',
    'The exit code is 1 if a dataset cannot be published; its reason is printed.',
  ],
  positionals: [{ name: 'FILE', help: 'the log file' }],
  options: { json },
  examples: [{ command: 'publish run.h5', says: 'h5py, xarray and ncdump read run.h5 from now on' }],
  async run({ values, positionals, context }) {
    const [path = ''] = positionals;
    if (context.comm.size > 1) throw new H5LogError('OPTION', 'publish runs in one process; start it without mpiexec');
    const begun = performance.now();
    const { publish: run } = await import('../../tools/publish/publish.ts');
    const result = await run(path);
    const took = (performance.now() - begun) / 1000;
    if (values.json) context.printJson({ path, ...result, seconds: took });
    else for (const line of lines(path, result, took)) context.print(line);
    return result.without.length > 0 ? 1 : 0;
  },
});

type Result = Awaited<ReturnType<typeof publish>>;

const HEAD = ['dataset', 'way', 'moved'] as const;

function* lines(path: string, { sequence, datasets, without }: Result, took: number): Iterable<string> {
  const rows = datasets.map((each) => [each.path, each.way, scaled(each.moved, 'B')]);
  if (rows.length > 0) yield* columns([HEAD, ...rows], 2);
  for (const each of without) yield `${each.path} is not published: ${each.reason}`;
  yield `${path}: commit ${sequence} is what everybody sees; ${several(datasets.length, 'dataset')} published, ${seconds(took)}`;
}
