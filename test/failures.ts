import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Keeps the input of a check that failed (a file, a program as JSON) in the folder that H5LOG_FAILURES names; `npm run soak`
 * sets it. The same name replaces what was kept before: of a property that shrinks its input, the smallest remains.
 *
 * @example catch (error) { keepInput('program.json', JSON.stringify(program)); throw error; }
 */
export function keepInput(name: string, content: string | Uint8Array): void {
  const folder = process.env.H5LOG_FAILURES;
  if (!folder) return;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name.replace(/[^\w.-]+/g, '-').slice(0, 150)), content);
}
