import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { isH5LogError } from '../../../src/base/errors.ts';
import { type Library, loadLibrary } from '../../../src/connector/native/library.ts';
import { NativeFile } from '../../../src/connector/native/native-file.ts';
import { type Description, type Plain, plainValue } from '../../interop/describe.ts';
import { runSync } from '../../oracles.ts';
import { temporaryDirectory } from '../../temporary.ts';

export const library: Library = await loadLibrary();

/** Regular files of every kind, made by h5py in a folder of their own. */
export function makeRegularFiles(): { folder: string; names: string[] } {
  const folder = temporaryDirectory();
  runSync('python', [fileURLToPath(new URL('make.py', import.meta.url)), folder]);
  return { folder, names: readdirSync(folder).filter((name) => name.endsWith('.h5')) };
}

/** Opens a file for as long as a piece of work takes. */
export function withFile<T>(path: string, work: (file: NativeFile) => T, mode: 'r' | 'r+' = 'r'): T {
  const file = NativeFile.open(library, path, mode);
  try {
    return work(file);
  } finally {
    file.close();
  }
}

/** All elements of a dataset in the words of the descriptions. */
export function plainData(file: NativeFile, path: string): Plain[] {
  const dataset = file.dataset(path);
  return Array.from(dataset.read() as ArrayLike<unknown>, (value) => plainValue(dataset.parts.dtype, value));
}

/** The datasets of a description. */
export function datasetsOf(description: Description): [path: string, values: readonly Plain[], isNull: boolean][] {
  return Object.entries(description).flatMap(([path, { dataset }]) =>
    dataset ? [[path, dataset.values ?? [], dataset.shape === null] as [string, readonly Plain[], boolean]] : [],
  );
}

/** The code of the error that some work throws; undefined if it throws none. */
export function codeOf(work: () => unknown): string | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    if (isH5LogError(error)) return error.code;
    throw error;
  }
}
