import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

const made: string[] = [];

// At import, and so in the outermost suite: a directory may be asked for inside a test, where no hook can be added any more.
afterAll(() => {
  made.splice(0).forEach(removeDirectory);
});

/** Removes a temporary directory; not with H5LOG_KEEP=1, which `npm run soak` sets: a failure needs its files. */
export function removeDirectory(directory: string): void {
  if (process.env.H5LOG_KEEP !== '1') rmSync(directory, { recursive: true, force: true });
}

/** A new empty directory, removed when the test file has ended. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'h5log-'));
  made.push(directory);
  return directory;
}
