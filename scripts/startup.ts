// How long h5log takes to start, as it was built: `import 'h5log'` and `h5log ls` of a small file, each in a process of its own.
// Fails above the limits, which are multiples of what Node takes for an empty module. Usage: tsx scripts/startup.ts
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { builtCommand, execute, root } from './root.ts';

/** The best of so many counts, because other programs disturb it least. */
const repetitions = 10;
/** A busy machine gets as many again, so often: what is slow by itself stays slow. */
const attempts = 3;

const folder = mkdtempSync(join(tmpdir(), 'h5log-startup-'));
try {
  const empty = join(folder, 'empty.mjs');
  writeFileSync(empty, '');
  const sample = join(folder, 'sample.h5');
  evaluate(`const { File } = await import('h5log');
    const file = File.createSync(${JSON.stringify(sample)});
    file.createDataset('x', { dtype: 'int32', shape: [3] }).write([1, 2, 3]);
    file.closeSync();`);

  const measured = {
    emptyImport: () => importing(pathToFileURL(empty).href),
    import: () => importing('h5log'),
    emptyProcess: () => running(empty),
    ls: () => running(builtCommand, 'ls', sample),
  };
  const best = { emptyImport: Infinity, import: Infinity, emptyProcess: Infinity, ls: Infinity };
  const limits = { import: Infinity, ls: Infinity };
  const isSlow = () => best.import > limits.import || best.ls > limits.ls;
  for (let i = 0; i < repetitions || (i < repetitions * attempts && isSlow()); i++) {
    // In turn, so that a busy second slows all of them.
    for (const name of Object.keys(best) as (keyof typeof best)[]) best[name] = Math.min(best[name], measured[name]());
    limits.import = 2 * best.emptyImport + 28;
    limits.ls = 2.2 * best.emptyProcess;
  }

  print('import of an empty module', best.emptyImport);
  print("import of 'h5log'", best.import, limits.import);
  print('node with an empty module', best.emptyProcess);
  print('h5log ls of a small file', best.ls, limits.ls);
  if (isSlow()) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** Milliseconds of an import in a new process. */
function importing(module: string): number {
  const text = `const begin = performance.now(); await import(${JSON.stringify(module)}); console.log(performance.now() - begin);`;
  return Number(evaluate(text));
}

/** Milliseconds of a process. */
function running(...args: string[]): number {
  const begin = performance.now();
  execute(process.execPath, args);
  return performance.now() - begin;
}

/** Runs a module's text where `h5log` is this package, as it was built. */
function evaluate(text: string): string {
  return execute(process.execPath, ['--input-type=module', '--eval', text], { cwd: root });
}

function print(name: string, took: number, limit = Infinity): void {
  const bound = limit === Infinity ? '' : `, at most ${limit.toFixed(1)} ms${took > limit ? ': too slow' : ''}`;
  process.stdout.write(`startup: ${name.padEnd(25)} ${took.toFixed(1).padStart(6)} ms${bound}\n`);
}
