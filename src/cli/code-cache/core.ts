// The core of dist/node, from code that V8 compiled before. The build makes a module of this and of the exports of the core.

import type { Script } from 'node:vm';

// What `import` gives of a module of Node has all that it exports, streams with node:fs: that takes 2 ms.
const { readFileSync, statSync } = process.getBuiltinModule('node:fs');
const { createRequire } = process.getBuiltinModule('node:module');
const { fileURLToPath } = process.getBuiltinModule('node:url');
const vm = process.getBuiltinModule('node:vm');

/** A module as a function: its text without imports and exports, with the imports as parameters. */
export interface Body {
  /** Where it is in the text, which is ASCII. */
  readonly from: number;
  readonly to: number;
  readonly parameters: string;
  /** The exports of the module as the inside of an object literal, which the function returns. */
  readonly result: string;
}

type Exports = Readonly<Record<string, unknown>>;
type Run = (...imports: readonly unknown[]) => Exports;

/**
 * The file with the code for this Node. V8 refuses code of another version, or that was compiled with other flags, but does not know
 * every way in which two builds of one version can differ: the size of the program tells them apart.
 */
function cacheName(): string {
  const { version, platform, arch, execPath } = process;
  return `core-${version}-${platform}-${arch}-${statSync(execPath).size}.bin`;
}

/** A function that `warm-up.ts` leaves on the global object gets the script of the core, which then has no code from a cache. */
type Keep = (script: Script, cache: URL) => void;

/** The exports of the core. Without kept code it is loaded as any other module: Node itself may have kept its code. */
export function loadCore(core: URL, body: Body, imports: readonly unknown[]): Exports {
  const keep = (globalThis as { [key: symbol]: Keep | undefined })[Symbol.for('h5log.keepCore')];
  const cache = new URL(cacheName(), core);
  const cachedData = keep ? undefined : cachedCode(cache);
  if (!cachedData && !keep && process.features.require_module)
    return createRequire(core)(fileURLToPath(core)) as Exports;
  const text = readFileSync(core, 'latin1').slice(body.from, body.to);
  // All imports are in the first line of the file: the others have the same numbers here and there.
  const source = `(function(${body.parameters}){'use strict';\n${text}return{${body.result}};\n})`;
  // Test runners may load modules with globals of their own, which only their own eval has.
  if (vm.runInThisContext('Array') !== Array) {
    const { eval: evaluate } = globalThis;
    return (evaluate(`${source}\n//# sourceURL=${core.href}`) as Run)(...imports);
  }
  const script = new vm.Script(source, { filename: core.href, ...(cachedData && { cachedData }) });
  const exports = (script.runInThisContext() as Run)(...imports);
  keep?.(script, cache);
  return exports;
}

/** undefined where there is none, and where it is not wanted: for stack traces that name the sources, and for coverage. */
function cachedCode(cache: URL): Buffer | undefined {
  if (process.sourceMapsEnabled || process.env.NODE_V8_COVERAGE) return undefined;
  try {
    return readFileSync(cache);
  } catch {
    return undefined;
  }
}
