import { parseArgs } from 'node:util';
import { H5LogError } from 'h5log';

export interface BenchOptions {
  /** Suites and workloads; none: all of them. */
  readonly names: readonly string[];
  readonly withPeers: boolean;
  /** Whether slow peers do all of the work. */
  readonly full: boolean;
  readonly scale: number;
  /** A command that is one more peer of the named workload. */
  readonly external: string | undefined;
  readonly json: boolean;
  /** Where to put a picture. */
  readonly chart: string | undefined;
}

/** What `npm run bench --` is told. Whatever is wrong with it throws, in words for the person who wrote it. */
export function readOptions(
  args: readonly string[],
  suites: readonly string[],
  workloads: readonly string[],
): BenchOptions {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      'no-peers': { type: 'boolean', default: false },
      full: { type: 'boolean', default: false },
      scale: { type: 'string', default: '1' },
      external: { type: 'string' },
      json: { type: 'boolean', default: false },
      chart: { type: 'string' },
    },
  });
  const known = [...suites, ...workloads];
  const unknown = positionals.filter((name) => !known.includes(name));
  if (unknown.length > 0)
    throw new H5LogError('OPTION', `there is no ${unknown.join(', ')}; there are ${known.join(', ')}`);
  const scale = Number(values.scale);
  if (!(scale > 0 && scale <= 1))
    throw new H5LogError('OPTION', `--scale is a number above 0, up to 1, not ${values.scale}`);
  if (values.external !== undefined) checkExternal(positionals, suites);
  return {
    names: positionals.length > 0 ? positionals : known,
    withPeers: !values['no-peers'],
    full: values.full,
    scale,
    external: values.external,
    json: values.json,
    chart: values.chart,
  };
}

function checkExternal(names: readonly string[], suites: readonly string[]): void {
  const [name, ...others] = names;
  if (name === undefined || others.length > 0)
    throw new H5LogError('OPTION', '--external is one more program for one workload: name it, and no other');
  if (name === 'e3sm') throw new H5LogError('OPTION', '--external is not for e3sm, which runs on several ranks');
  if (suites.includes(name)) throw new H5LogError('OPTION', `--external is for a workload, and ${name} is a suite`);
}
