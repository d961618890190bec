import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { execute, root } from './root.ts';

/** A project of a user's own, outside this one, with h5log installed from a packed tarball. */
export interface PackedProject {
  readonly folder: string;
  /** Removes the folder. */
  discard(): void;
}

/** Packs h5log, or takes the tarball that is named, and installs it. */
export function packedProject(tarball?: string): PackedProject {
  const folder = mkdtempSync(join(tmpdir(), 'h5log-packed-'));
  const discard = () => rmSync(folder, { recursive: true, force: true });
  try {
    const file = tarball === undefined ? pack(folder) : resolve(tarball);
    const manifest = { name: 'consumer', private: true, type: 'module' };
    writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
    execute('npm', ['install', '--silent', '--no-audit', '--no-fund', '--no-package-lock', file], { cwd: folder });
    // Node's types are the only thing besides h5log that a TypeScript user has.
    for (const name of ['@types/node', 'undici-types']) {
      cpSync(join(root, 'node_modules', name), join(folder, 'node_modules', name), { recursive: true });
    }
    return { folder, discard };
  } catch (error) {
    discard();
    throw error;
  }
}

function pack(folder: string): string {
  execute('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: root });
  const name = readdirSync(folder).find((file) => file.endsWith('.tgz'));
  if (name === undefined) throw new Error('npm pack wrote no tarball');
  return join(folder, name);
}
