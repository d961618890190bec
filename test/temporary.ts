import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

const made: string[] = [];

// At import, and so in the outermost suite: a directory may be asked for inside a test, where no hook can be added any more.
afterAll(() => {
  for (const directory of made.splice(0)) rmSync(directory, { recursive: true, force: true });
});

/** A new empty directory, removed when the test file has ended. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'h5log-'));
  made.push(directory);
  return directory;
}
