import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { E3smReport, E3smTimes } from '../src/bench/e3sm.ts';
import { COMMAND } from './built.ts';
import { LAUNCHERS, type Launcher, runMpi } from './mpi.ts';
import { median, report } from './report.ts';

/** How many times as long as plain writes of the same bytes, with lent buffers. */
const LENT: Readonly<Record<number, number>> = { 1: 4.5, 2: 6, 4: 9, 16: 22 };
const COPIED = 1.5;
const MPI = 1.3;
const COLD = 0.5;
const FLUSH_COLLECTIVES = 4;
/** Warm repetitions that count, and those before them, in which every rank compiles. */
const TURNS = 20;
const WARM_UP = 20;
/** The version whose cold start is compared with. */
const EARLIER = '52bf62a';
const COLD_TURNS = 5;

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** The E3SM case against plain writes in the same processes: lent and copied, threads and MPI; collectives; the cold start. */
export async function reportRanks(folder: string, args: readonly string[]): Promise<void> {
  for (const ranks of [1, 2, 4, 16]) {
    const lent = await written(args, ranks, ['--lend']);
    const copied = await written(args, ranks, []);
    if (!lent || !copied) continue;
    show(`e3sm/${ranks}: threads, lent`, lent, LENT[ranks]);
    show(`e3sm/${ranks}: threads, copied`, copied, COPIED * (LENT[ranks] as number));
    if (ranks > 1) showCollectives(`e3sm/${ranks}`, lent);
    if (ranks !== 2 && ranks !== 4) continue;
    for (const [launcher, name] of Object.entries(LAUNCHERS) as [Launcher, string][]) {
      const found = await written(args, ranks, ['--lend'], launcher);
      if (!found) continue;
      show(`e3sm/${ranks}: ${name}, lent`, found);
      const limit = { limit: MPI };
      report(`  best, against threads`, best(found, 'total') / best(lent, 'total'), 'x', limit);
    }
  }
  await reportCold(folder, args);
}

function show(what: string, { times }: E3smReport, limit?: number): void {
  const counted = times.slice(WARM_UP);
  const ratios = counted.map(({ total, plain }) => total / plain);
  const middle = median(counted.map(({ total }) => total));
  report(`${what}, best of ${counted.length}`, Math.min(...counted.map(({ total }) => total)), 's');
  report('  median', middle, 's');
  report('  plain writes, best', Math.min(...counted.map(({ plain }) => plain)), 's');
  const least = { ...(limit !== undefined && { limit }) };
  report('  best against best plain writes', best({ times }, 'total') / best({ times }, 'plain'), 'x', least);
  report('  median of the ratios of all turns', median(ratios), 'x', least);
}

function best({ times }: Pick<E3smReport, 'times'>, of: 'total' | 'plain'): number {
  return Math.min(...times.slice(WARM_UP).map((one: E3smTimes) => one[of]));
}

function showCollectives(what: string, { files }: E3smReport): void {
  const [{ collectives }] = files as [E3smReport['files'][0]];
  report(`${what}: collectives of open`, collectives.open, 'calls');
  report(`${what}: collectives of define`, collectives.define, 'calls', { limit: 0 });
  report(`${what}: collectives of a flush`, collectives.flush, 'calls', { limit: FLUSH_COLLECTIVES });
  report(`${what}: collectives of close`, collectives.close, 'calls');
}

async function written(
  args: readonly string[],
  ranks: number,
  more: readonly string[],
  launcher?: Launcher,
): Promise<E3smReport | undefined> {
  const all = ['bench', 'e3sm', ...args, ...more, '--repeat', String(WARM_UP + TURNS), '--json'];
  if (!launcher) return JSON.parse(node([COMMAND, ...all, '--ranks', String(ranks)])) as E3smReport;
  const outcome = await runMpi(launcher, ranks, [process.execPath, COMMAND, ...all]);
  return typeof outcome === 'string' ? undefined : (JSON.parse(outcome.stdout) as E3smReport);
}

function node(args: readonly string[]): string {
  return execFileSync(process.execPath, [...args], { encoding: 'utf8', maxBuffer: 2 ** 26 });
}

/** The first time in a process, with the import, beside an earlier version of the package in the same run. */
async function reportCold(folder: string, args: readonly string[]): Promise<void> {
  const earlier = earlierCommand(folder);
  for (const ranks of [1, 2, 4]) {
    const [now, before]: [number[], number[]] = [[], []];
    for (let turn = 0; turn < COLD_TURNS; turn++) {
      now.push(cold(COMMAND, args, ranks));
      if (earlier !== undefined) before.push(cold(earlier, args, ranks));
    }
    report(`e3sm/${ranks}: cold, import included, best of ${COLD_TURNS}`, Math.min(...now), 's');
    report('  median', median(now), 's');
    if (before.length === 0) continue;
    report(`  version ${EARLIER}, best`, Math.min(...before), 's');
    report('  version of then, median', median(before), 's');
    report('  best against best', Math.min(...now) / Math.min(...before), 'x', { limit: COLD });
  }
}

/** Seconds from open to close in a new process, and those of its import. */
function cold(command: string, args: readonly string[], ranks: number): number {
  const importing = `const t = performance.now(); await import(${JSON.stringify(entryOf(command))}); console.log(performance.now() - t)`;
  const imported = Number(node(['--input-type=module', '-e', importing])) / 1000;
  const all = [command, 'bench', 'e3sm', ...args, '--lend', '--repeat', '1', '--json', '--ranks', String(ranks)];
  const [first] = (JSON.parse(node(all)) as E3smReport).times as [E3smTimes];
  return imported + first.total;
}

/** The entry point `h5log` beside a command. */
function entryOf(command: string): string {
  return join(command, '..', existsSync(join(command, '..', 'index.js')) ? 'index.js' : '../index.js');
}

/** The command of the earlier version, built in a folder; undefined where there is no history. */
function earlierCommand(folder: string): string | undefined {
  const own = join(folder, 'earlier');
  try {
    mkdirSync(own);
    const archive = execFileSync('git', ['archive', EARLIER], { cwd: ROOT, maxBuffer: 2 ** 30 });
    execFileSync('tar', ['-x', '-C', own], { input: archive });
    symlinkSync(join(ROOT, 'node_modules'), join(own, 'node_modules'));
    execFileSync('npm', ['run', '--silent', 'build'], { cwd: own, stdio: ['ignore', 'ignore', 'pipe'] });
  } catch (error) {
    console.log(
      `skipped: the cold start of ${EARLIER}, which cannot be built: ${(error as Error).message.split('\n')[0]}`,
    );
    return undefined;
  }
  return ['dist/node/cli.js', 'dist/cli.js', 'dist/cli/main.js', 'dist/src/cli.js']
    .map((path) => join(own, path))
    .find((path) => existsSync(path));
}
