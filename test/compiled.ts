import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';
import { afterAll } from 'vitest';

// Inside the project, so that the optional packages are found from there.
const place = fileURLToPath(new URL('../node_modules/.h5log-tests/', import.meta.url));
const built = new Map<string, string>();

afterAll(() => {
  for (const folder of built.values()) rmSync(folder, { recursive: true, force: true });
  built.clear();
});

/**
 * A TypeScript program with the sources of h5log as one file of JavaScript: a process that compiles them for itself needs a second
 * of its core before it begins.
 */
export function compiled(program: URL | string): string {
  const path = program instanceof URL ? fileURLToPath(program) : program;
  let folder = built.get(path);
  if (!folder) {
    mkdirSync(place, { recursive: true });
    folder = mkdtempSync(place);
    buildSync({
      entryPoints: { program: path },
      outdir: folder,
      outExtension: { '.js': '.mjs' },
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      conditions: ['h5log-source'],
      external: ['koffi', 'h5wasm', 'h5wasm/node'],
      sourcemap: 'inline',
      logLevel: 'error',
    });
    built.set(path, folder);
  }
  return join(folder, 'program.mjs');
}
