import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { builtCommand, execute, root } from '../scripts/root.ts';

/** What the build reads. */
const inputs = [
  'src',
  'package.json',
  'tsconfig.json',
  'tsconfig.build.json',
  join('scripts', 'build.ts'),
  join('scripts', 'core.ts'),
  join('scripts', 'internal-names.ts'),
];

/** Builds the package before the tests, if its sources have changed: programs that are started as users start them need no compiler. */
export default function build(): void {
  if (inputs.every((path) => changed(join(root, path)) <= changed(builtCommand))) return;
  execute('npm', ['run', '--silent', 'build']);
}

/** When something was last changed, in milliseconds; 0 if it is not there. */
function changed(path: string): number {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat?.isDirectory()) return stat?.mtimeMs ?? 0;
  return Math.max(stat.mtimeMs, ...readdirSync(path).map((name) => changed(join(path, name))));
}
