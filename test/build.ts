import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execute, root } from '../scripts/root.ts';

const place = join(root, 'node_modules', '.h5log-tests');
const stamp = join(place, 'built');

/** Builds the package before the tests, if its sources have changed: programs that are started as users start them need no compiler. */
export default function build(): void {
  if (changed(join(root, 'src')) <= changed(stamp)) return;
  execute('npm', ['run', '--silent', 'build']);
  mkdirSync(place, { recursive: true });
  writeFileSync(stamp, '');
}

/** When something was last changed, in milliseconds; 0 if it is not there. */
function changed(path: string): number {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat?.isDirectory()) return stat?.mtimeMs ?? 0;
  return Math.max(stat.mtimeMs, ...readdirSync(path).map((name) => changed(join(path, name))));
}
