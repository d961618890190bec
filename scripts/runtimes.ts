// A smoke test of the packed tarball on the runtimes that users have, and its declarations with the oldest TypeScript. They weigh 600 MB, so that they are no development dependencies:
// they are installed into .runtimes/, and stay there. Usage: tsx scripts/runtimes.ts [tarball]
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packedProject } from './packed.ts';
import { execute, root } from './root.ts';

interface Runtime {
  readonly name: string;
  /** The package of npm, and the versions that are tested. */
  readonly from: string;
  /** Where the program is in that package, or in the one for this machine that it depends on: the only one of this scope. */
  readonly program: string;
  readonly scope?: string;
  /** Arguments before the name of a module. */
  readonly run: readonly string[];
}

// Not the package `node`: all that it has is an install script, which fetches this one.
const node = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`;
// Those that the README names.
const allow = ['read', 'write', 'env', 'sys', 'run'].map((name) => `--allow-${name}`);
const runtimes: readonly Runtime[] = [
  { name: 'node22', from: `${node}@22`, program: 'bin/node', run: [] },
  { name: 'node24', from: `${node}@24`, program: 'bin/node', run: [] },
  { name: 'deno', from: 'deno@2', scope: '@deno', program: 'deno', run: ['run', ...allow] },
  { name: 'bun', from: 'bun@1', scope: '@oven', program: 'bin/bun', run: [] },
];
/** The oldest TypeScript whose users can compile with our declarations. */
const compiler = { name: 'typescript5.4', from: 'typescript@~5.4', program: 'bin/tsc' };
/** What console.log prints in scripts/runtimes/print.mjs, on every runtime. */
const transcript = [
  'Dataset /atm/T float64 [3, 72, 866] of print.h5',
  'File print.h5 (r+, 1 member, commit 0)',
  'Group /atm (1 member) of print.h5',
  'Attributes of /atm/T: units',
  'Selection of 6 elements in 2 dimensions',
].join('\n');
const folder = join(root, '.runtimes');

install();
const project = packedProject(process.argv[2]);
try {
  const command = join(project.folder, 'node_modules', 'h5log', 'dist', 'node', 'cli.js');
  for (const runtime of runtimes) {
    const program = programOf(runtime);
    const run = (...args: string[]) => execute(program, [...runtime.run, ...args], { cwd }).trim();
    const cwd = mkdtempSync(join(project.folder, `${runtime.name}-`));
    cpSync(join(root, 'scripts', 'runtimes'), cwd, { recursive: true });
    const [version = ''] = execute(program, ['--version']).trim().split('\n');
    const printed = run('smoke.mjs');
    const listed = run(command, 'ls', 'smoke.h5');
    if (!/^run +Group$/.test(listed)) throw new Error(`h5log ls printed on ${runtime.name}:\n${listed}`);
    const lines = run('print.mjs');
    if (lines !== transcript) throw new Error(`console.log printed on ${runtime.name}:\n${lines}`);
    if (runtime.name.startsWith('node')) {
      run(command, 'code-cache');
      const kept = run('kept.mjs');
      if (kept !== 'function rejected: false') throw new Error(`the kept code was not used: ${kept}`);
      run('smoke.mjs');
    }
    process.stdout.write(`runtimes: ${runtime.name} (${version}): ${printed}\n`);
  }
  cpSync(join(root, 'scripts', 'consumer'), project.folder, { recursive: true });
  for (const target of ['node', 'web']) {
    const args = [programOf(compiler), '--noEmit', '-p', `tsconfig.${target}.json`];
    execute(process.execPath, args, { cwd: project.folder });
    process.stdout.write(`runtimes: ${compiler.name} compiles for ${target}, strict, declarations checked\n`);
  }
} finally {
  project.discard();
}

/** Installs what is missing. Install scripts are not run: the programs are in the packages. */
function install(): void {
  if ([...runtimes, compiler].every((installed) => existsSync(programOf(installed)))) return;
  mkdirSync(folder, { recursive: true });
  const dependencies = Object.fromEntries([...runtimes, compiler].map(({ name, from }) => [name, `npm:${from}`]));
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies }));
  const flags = ['--silent', '--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock'];
  execute('npm', ['install', ...flags], { cwd: folder });
  for (const runtime of runtimes) chmodSync(programOf(runtime), 0o755);
}

function programOf({ name, scope, program }: Pick<Runtime, 'name' | 'scope' | 'program'>): string {
  const modules = join(folder, 'node_modules');
  if (scope === undefined) return join(modules, name, program);
  const scoped = join(modules, scope);
  const [machine = ''] = existsSync(scoped) ? readdirSync(scoped) : [];
  return join(scoped, machine, program);
}
