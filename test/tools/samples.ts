import { copyFileSync, cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { File } from 'h5log';
import { runThreads } from 'h5log/threads';
import { sessionOf } from '../../src/api/handle.ts';
import { pythonSync } from '../oracles.ts';
import { folder } from '../original/fixtures.ts';
import { temporaryDirectory } from '../temporary.ts';

/** A fixture of the original with its subfiles, in a folder where it may be changed. */
export function fixtureCopy(name: string): string {
  const path = join(temporaryDirectory(), name.replace(/^.*\//, ''));
  copyFileSync(join(folder, name), path);
  const subfiles = join(folder, `${name}.subfiles`);
  if (existsSync(subfiles)) cpSync(subfiles, `${path}.subfiles`, { recursive: true });
  return path;
}

/** A file that several ranks wrote: test/parallel/scripted.ts. */
export async function fileOfRanks(ranks: number, subfiles = 0): Promise<string> {
  const path = join(temporaryDirectory(), 'ranks.h5');
  const module = new URL('../parallel/scripted.ts', import.meta.url);
  await runThreads(ranks, module, { path, ...(subfiles > 0 && { subfiles }) });
  return path;
}

/** A regular file with every kind of object and type. */
export function regularFile(): string {
  const path = join(temporaryDirectory(), 'regular.h5');
  pythonSync(readFileSync(new URL('./regular-file.py', import.meta.url), 'utf8'), [path]);
  return path;
}

/** A log file whose table has a byte changed, so that it says nonsense. */
export async function damagedTable(): Promise<string> {
  const path = join(temporaryDirectory(), 'damaged.h5');
  const file = await File.create(path, { publish: 'never' });
  file.createDataset('/d', { dtype: 'int32', shape: [10] }).write(new Int32Array(10));
  await file.close();
  const reader = await File.open(path);
  const table = sessionOf(reader).log?.main.committed.tables[0];
  await reader.close();
  const bytes = readFileSync(path);
  // The number of sections.
  bytes[(table?.address ?? 0) + 2] = 0xff;
  writeFileSync(path, bytes);
  return path;
}

/** A file of which the end is missing. */
export function cutFile(): string {
  const path = fixtureCopy('mix_1r.h5');
  writeFileSync(path, readFileSync(path).subarray(0, 700));
  return path;
}

/** The smallest NetCDF classic file: no dimensions, attributes or variables. */
export function classicFile(): string {
  const path = join(temporaryDirectory(), 'classic.nc');
  writeFileSync(path, Buffer.concat([Buffer.from('CDF\u0001'), Buffer.alloc(28)]));
  return path;
}
