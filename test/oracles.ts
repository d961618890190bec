import { execFile, spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe, test } from 'vitest';

/** The tools of others that tests compare with; `python` is one that has h5py, `xarray` one that has netCDF4, xarray and h5netcdf too. */
export type Oracle =
  | 'h5dump'
  | 'h5ls'
  | 'h5diff'
  | 'h5repack'
  | 'h5copy'
  | 'ncdump'
  | 'ncgen'
  | 'nccopy'
  | 'python'
  | 'xarray'
  | 'mpiexec.openmpi'
  | 'mpiexec.mpich'
  | 'chromium'
  | 'zsh'
  | 'fish'
  | 'groff';

const found = new Map<Oracle, string | undefined>();

/** The path of a tool, or undefined if this machine has none. */
export function oracle(name: Oracle): string | undefined {
  if (!found.has(name)) {
    const modules = MODULES[name];
    found.set(name, modules ? findPython(modules) : findOnPath(name));
  }
  return found.get(name);
}

const MODULES: Partial<Record<Oracle, string>> = { python: 'h5py', xarray: 'h5py, netCDF4, xarray, h5netcdf' };

function findOnPath(name: string): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/bin'];
  return folders
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, name))
    .find(isExecutable);
}

// The system's Python and not the first on PATH: apt installs h5py for the former only.
function findPython(modules: string): string | undefined {
  const path = process.env.H5LOG_PYTHON ?? '/usr/bin/python3';
  return spawnSync(path, ['-c', `import ${modules}`]).status === 0 ? path : undefined;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * A suite that needs tools. Where one is missing the suite is skipped and one line says so; with CI=true it fails.
 *
 * @example withOracle('h5dump', 'what h5dump reads of our files', () => { test('a group', () => { ... }); });
 */
export function withOracle(needs: Oracle | readonly Oracle[], checks: string, suite: () => void): void {
  const missing = (typeof needs === 'string' ? [needs] : needs).filter((name) => oracle(name) === undefined);
  if (missing.length === 0) {
    describe(checks, suite);
    return;
  }
  const names = missing.map((name) => (MODULES[name] ? `python3 with ${MODULES[name]}` : name)).join(', ');
  const it = missing.length === 1 ? 'it' : 'them';
  const reason = `${names} not found; npm run oracles installs ${it}`;
  if (process.env.CI === 'true') {
    describe(checks, () => {
      test('its tools are installed', () => {
        throw new Error(reason);
      });
    });
  } else {
    process.stdout.write(`skipped: ${checks} (${reason})\n`);
    describe.skip(checks, suite);
  }
}

/** Standard output of `h5dump ...args`. An exit code other than 0 throws, with what it wrote to standard error. */
export function h5dump(...args: string[]): string {
  return runSync('h5dump', args);
}

/** Standard output of `h5ls ...args`. */
export function h5ls(...args: string[]): string {
  return runSync('h5ls', args);
}

/** Standard output of `ncdump ...args`. */
export function ncdump(...args: string[]): string {
  return runSync('ncdump', args);
}

/** Standard output of a Python script, given as its text; `args` are its sys.argv[1:]. */
export function pythonSync(script: string, args: readonly string[] = [], input = ''): string {
  return runSync('python', ['-c', script, ...args], input);
}

const VISIT = `
import sys, h5py
count = 0
def visit(name, item):
    global count
    count += 1
    list(item.attrs.items())
    if isinstance(item, h5py.Dataset) and item.shape is not None and item.size is not None:
        item[()]
for path in sys.argv[1:]:
    with h5py.File(path, 'r') as f:
        list(f.attrs.items())
        f.visititems(visit)
print(count)
`;

/** Lets h5py open every object in files and read what has elements; gives the number of objects. */
export function visitWithH5py(paths: readonly string[]): number {
  return Number(pythonSync(VISIT, paths));
}

/** As {@link pythonSync}, without waiting: for a reader beside a writer in this process. */
export function python(script: string, args: readonly string[] = [], input = ''): Promise<string> {
  return run('python', ['-c', script, ...args], input);
}

const limits = { encoding: 'utf8', maxBuffer: 2 ** 30, env: { ...process.env, LC_ALL: 'C.UTF-8' } } as const;

/** Runs a tool to its end. */
export function runSync(name: Oracle, args: readonly string[], input = ''): string {
  const result = spawnSync(path(name), args, { ...limits, input });
  if (result.error) throw result.error;
  if (result.status !== 0) throw failure(name, args, result.status ?? result.signal, result.stderr);
  return result.stdout;
}

/** Runs a tool and resolves with its standard output. */
export function run(name: Oracle, args: readonly string[], input = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(path(name), args, limits, (error, stdout, stderr) => {
      if (error) reject(failure(name, args, error.code ?? error.signal, stderr));
      else resolve(stdout);
    });
    // A tool that ends before it has read its input is judged by its exit code, not by the broken pipe.
    child.stdin?.on('error', () => {});
    child.stdin?.end(input);
  });
}

function path(name: Oracle): string {
  const place = oracle(name);
  if (place === undefined) throw new Error(`${name} not found; npm run oracles installs it`);
  return place;
}

function failure(name: Oracle, args: readonly string[], status: unknown, stderr: string): Error {
  return new Error(`${name} ${args.join(' ')} ended with ${status}: ${stderr.trim()}`);
}
