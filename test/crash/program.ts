import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { buildSync } from 'esbuild';
import { afterAll } from 'vitest';
import { temporaryDirectory } from '../temporary.ts';

/** Compiles a module of these tests once: each child then starts in 50 ms and not in 400. */
export function compile(module: string): string {
  const outfile = join(temporaryDirectory(), module.replace(/\.ts$/, '.mjs'));
  buildSync({
    entryPoints: [new URL(module, import.meta.url).pathname],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    conditions: ['h5log-source'],
    logLevel: 'error',
  });
  return outfile;
}

const alive = new Set<ChildProcess>();
afterAll(() => {
  for (const child of alive) child.kill('SIGKILL');
});

/** A process of ours, read line by line. It ends with the test file at the latest. */
export class Program {
  readonly lines: string[] = [];
  errors = '';
  /** Called with every line as it comes. */
  onLine: (line: string) => void = () => {};
  readonly child: ChildProcessWithoutNullStreams;
  readonly #ended: Promise<unknown>;

  constructor(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    this.child = spawn(command, args, { env: { ...process.env, ...env } });
    const { child } = this;
    alive.add(child);
    // 'close' and not 'exit': what it wrote before the end has been read by then.
    this.#ended = once(child, 'close').then(() => alive.delete(child));
    let rest = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        this.lines.push(line);
        this.onLine(line);
      }
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.errors += text;
    });
    child.stdin.on('error', () => {});
  }

  kill(): void {
    this.child.kill('SIGKILL');
  }

  async end(): Promise<void> {
    await this.#ended;
  }

  /** Waits for a line that begins so. */
  async line(beginning: string): Promise<string> {
    for (;;) {
      const found = this.lines.find((line) => line.startsWith(beginning));
      if (found !== undefined) return found;
      const more = await Promise.race([
        once(this.child.stdout, 'data').then(() => true),
        this.#ended.then(() => false),
      ]);
      if (!more && !this.lines.some((line) => line.startsWith(beginning))) {
        throw new Error(`the program ended without saying '${beginning}': ${this.errors}`);
      }
    }
  }

  say(line: string): void {
    this.child.stdin.write(`${line}\n`);
  }
}

export function startProgram(program: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Program {
  return new Program(process.execPath, [program, ...args], env);
}
