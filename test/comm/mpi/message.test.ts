import { spawnSync } from 'node:child_process';
import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test, vi } from 'vitest';
import { root } from '../../../scripts/root.ts';
import { libraryNames, requiredCalls } from '../../../src/comm/mpi/binding.ts';
import { runThreads } from '../../../src/comm/threads/run.ts';
import { startNode } from '../../child.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { runMpi, withEachMpi } from './job.ts';

interface Answer {
  readonly code?: string;
  readonly message?: string;
  readonly rank?: number;
  readonly size?: number;
}

const program = new URL('./programs/message.ts', import.meta.url);
vi.setConfig({ testTimeout: 120_000 });

describe('mpi() says', () => {
  test('that it works on the main thread only', async () => {
    const answers = await runThreads<Answer>(1, new URL('./programs/in-thread.ts', import.meta.url));
    expect(answers).toEqual([{ code: 'COMM', message: expect.stringContaining('only on the main thread') }]);
  });

  test('that srun has started tasks without MPI', async () => {
    const { code, message, rank } = await ask([], { SLURM_NTASKS: '4', SLURM_PROCID: '2' });
    const text = 'srun started 4 tasks without MPI; use srun --mpi=pmix';
    expect([code, message, rank]).toEqual(['COMM', text, 2]);
  });

  test('which libraries it has tried, and why none could be loaded', async () => {
    const { code, message } = await ask(['elsewhere']);
    expect(code).toBe('COMM');
    expect(message).toMatch(/^no MPI library found; install one or set MPI_LIB to its path\. Tried:\n/);
    for (const name of ['libmpi.40.dylib', 'libmpi.12.dylib', 'libmpi.dylib']) {
      expect(message).toMatch(new RegExp(`\n {2}${name}: .*(no such file|cannot open)`, 'i'));
    }
  });

  test('that MPI_LIB cannot be loaded', async () => {
    const { code, message } = await ask([], { MPI_LIB: 'libnone.so.7' });
    expect(code).toBe('COMM');
    expect(message).toMatch(/^MPI_LIB is libnone\.so\.7, which cannot be loaded: .+/);
  });

  test('that MPI_LIB is not MPI', async () => {
    const { code, message } = await ask([], { MPI_LIB: 'libm.so.6' });
    const text = 'MPI_LIB is libm.so.6, which is not an MPI library: it has no MPI_Init_thread';
    expect([code, message]).toEqual(['COMM', text]);
  });

  test('that the option is not MPI; it wins over MPI_LIB', async () => {
    const { message } = await ask(['plain', 'libm.so.6'], { MPI_LIB: 'libnone.so.7' });
    expect(message).toMatch(/^the option library is libm\.so\.6, which is not an MPI library/);
  });
});

const compiler = spawnSync('cc', ['--version']).status === 0;
if (!compiler) process.stdout.write('skipped: messages about unusual MPI libraries (cc not found)\n');

describe.skipIf(!compiler)('mpi() says of a library', () => {
  test('that its binary interface is unknown', async () => {
    const { code, message } = await ask([], { MPI_LIB: library('Strange MPI 1.0') });
    expect(code).toBe('UNSUPPORTED');
    expect(message).toMatch(/^the binary interface of .* \(Strange MPI 1\.0\) is unknown; known are/);
  });

  test('that its thread level is too low', async () => {
    const { code, message } = await ask([], { MPI_LIB: library('MPICH Version: 1') });
    expect(code).toBe('UNSUPPORTED');
    expect(message).toMatch(/\(MPICH Version: 1\) gives thread level 0; MPI_THREAD_FUNNELED is needed/);
  });

  test('which call it lacks', async () => {
    const { code, message } = await ask([], { MPI_LIB: library('MPICH Version: 1', 'MPI_Iexscan') });
    expect(code).toBe('UNSUPPORTED');
    expect(message).toMatch(/\(MPICH Version: 1\) has no MPI_Iexscan$/);
  });
});

withEachMpi('mpi() under mpiexec', (mpi) => {
  const other = mpi === 'openmpi' ? 'libmpich.so.12' : 'libmpi.so.40';
  const ours = mpi === 'openmpi' ? 'libmpi.so.40' : 'libmpich.so.12';
  const run = async (env: Record<string, string>, args: string[] = []) => {
    const { code, stdout } = await runMpi({ mpi, ranks: 2, program, inPlace: true, env, args, timeout: 90_000 });
    return { exit: code, answers: answersIn(stdout) };
  };

  test('finds the library of the launcher', async () => {
    const { exit, answers } = await run({});
    expect([exit, answers]).toEqual([0, [{ size: 2 }, { size: 2 }]]);
  });

  test('cannot have two libraries', async () => {
    const { answers } = await run({}, ['twice']);
    const message = `mpi() has loaded ${ours} in this process; it cannot load libother.so as well`;
    expect(answers).toEqual(Array.from({ length: 2 }, () => ({ code: 'OPTION', message })));
  });

  test('says that the library is of another installation than the launcher', async () => {
    const { answers } = await run({ MPI_LIB: other });
    expect(answers.map(({ rank }) => rank).sort()).toEqual([0, 1]);
    const starter = mpi === 'openmpi' ? 'mpiexec of Open MPI' : 'a launcher with PMI \\(mpiexec of MPICH.*\\)';
    for (const { code, message } of answers) {
      expect(code).toBe('COMM');
      expect(message).toMatch(
        new RegExp(
          `^${starter} started 2 processes, but ${other} \\(.*\\) knows only 1; set MPI_LIB, or use the launcher`,
        ),
      );
    }
  });

  test('says that koffi is missing, and how to install it', async () => {
    const folder = temporaryDirectory();
    // What is published, in a place from where no package can be found.
    cpSync(join(root, 'dist', 'node'), join(folder, 'dist'), { recursive: true });
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    const entry = join(folder, 'program.ts');
    const text = `import { mpi } from './dist/mpi.js';
      try { mpi(); } catch ({ code, message }) { process.stdout.write(JSON.stringify({ code, message }) + '\\n'); }`;
    writeFileSync(entry, text);
    const { stdout } = await runMpi({ mpi, ranks: 2, program: entry, inPlace: true, timeout: 90_000 });
    const message = 'mpi() needs the package koffi, which is not installed; npm install koffi';
    expect(answersIn(stdout)).toEqual(Array.from({ length: 2 }, () => ({ code: 'UNSUPPORTED', message })));
  });
});

test('a PMI launcher gets the libraries of MPICH first', () => {
  expect(libraryNames({ kind: 'pmi', rank: 0, size: 2 })[0]).toBe('libmpich.so.12');
  expect(libraryNames({ kind: 'openmpi', rank: 0, size: 2 })[0]).toBe('libmpi.so.40');
  expect(libraryNames(undefined)[0]).toBe('libmpi.so.40');
});

function answersIn(stdout: string): Answer[] {
  return stdout
    .split(/\r?\n/)
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Answer);
}

/** Runs the program as a single process. */
function ask(args: readonly string[], env: Record<string, string> = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const child = startNode(program, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit'] });
    let stdout = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.on('error', reject);
    child.on('close', () => {
      const [answer] = answersIn(stdout);
      if (answer) resolve(answer);
      else reject(new Error(`no answer from ${fileURLToPath(program)}: ${stdout}`));
    });
  });
}

/** A library that has the names of MPI and does nothing. */
function library(version: string, lacks?: string): string {
  const folder = temporaryDirectory();
  const source = join(folder, 'mpi.c');
  const calls = requiredCalls.filter((name) => name !== 'MPI_Init_thread' && name !== lacks);
  const text = [
    '#include <string.h>',
    'int MPI_Init_thread(void *argc, void *argv, int required, int *provided) { *provided = 0; return 0; }',
    `int MPI_Get_library_version(char *text, int *length) { strcpy(text, "${version}"); *length = strlen(text); return 0; }`,
    ...calls.map((name) => `int ${name}(void) { return 0; }`),
  ];
  writeFileSync(source, `${text.join('\n')}\n`);
  const path = join(folder, 'libmpi.so');
  const { status, stderr } = spawnSync('cc', ['-shared', '-fPIC', '-o', path, source], { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return path;
}
