import { openForReading } from '#platform';
import { Dataset } from '../api/dataset.ts';
import type { File } from '../api/file.ts';
import { H5LogError, isH5LogError } from '../base/errors.ts';
import { blobStorage } from '../storage/blob.ts';
import { httpStorage } from '../storage/http.ts';
import type { ByteStorage } from '../storage/storage.ts';
import { logOf, membersOf, reading, type Source } from './inside.ts';

/** What a file is, in the words of the original's h5ldump. */
export type FileKind =
  | 'HDF5'
  | 'HDF5-LogVOL'
  | 'NetCDF-4'
  | 'NetCDF classic'
  | 'NetCDF 64-bit offset'
  | 'NetCDF 64-bit data'
  | 'unknown';

const HDF5 = [0x89, 0x48, 0x44, 0x46, 0x0d, 0x0a, 0x1a, 0x0a];
const CLASSIC: Readonly<Record<number, FileKind>> = {
  1: 'NetCDF classic',
  2: 'NetCDF 64-bit offset',
  5: 'NetCDF 64-bit data',
};
/** Attributes that the NetCDF library leaves in its files. */
const NETCDF_ROOT = ['_NCProperties', '_nc3_strict'];
const NETCDF_DATASET = ['_Netcdf4Dimid', '_Netcdf4Coordinates'];

/**
 * What a file is: by its first bytes, and if it is HDF5 by what is in it.
 *
 * @example await fileKind('run.h5'); // 'HDF5-LogVOL'
 */
export async function fileKind(source: Source): Promise<FileKind> {
  const begins = await signature(source);
  return begins === 'HDF5' ? reading(source, async (file) => kindOf(file)) : begins;
}

/** The same for a file that is open. */
export function kindOf(file: File): FileKind {
  if (logOf(file)) return 'HDF5-LogVOL';
  if (NETCDF_ROOT.some((name) => file.attributes.has(name))) return 'NetCDF-4';
  for (const { object } of membersOf(file)) {
    if (object instanceof Dataset && NETCDF_DATASET.some((name) => object.attributes.has(name))) return 'NetCDF-4';
  }
  return 'HDF5';
}

/** Turns the error of a file that is no HDF5 into one that says what it is. */
export async function sayingKind<T>(source: Source, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isH5LogError(error, 'FORMAT')) throw error;
    const kind = await signature(source);
    if (kind === 'HDF5' || kind === 'unknown') throw error;
    throw new H5LogError('UNSUPPORTED', `${error.file ?? 'the file'} is ${kind}, not HDF5`, { cause: error });
  }
}

async function signature(source: Source): Promise<FileKind> {
  const isOurs = typeof source === 'string' || source instanceof URL || source instanceof Blob;
  const storage = storageOf(source);
  try {
    const bytes = new Uint8Array(8);
    const size = await storage.size();
    // Behind a user block the superblock is at 512, 1024, 2048 ...
    for (let at = 0; at + 8 <= size; at = at === 0 ? 512 : at * 2) {
      await storage.read(bytes, at);
      if (HDF5.every((byte, i) => bytes[i] === byte)) return 'HDF5';
      if (at === 0 && bytes[0] === 0x43 && bytes[1] === 0x44 && bytes[2] === 0x46)
        return CLASSIC[bytes[3] as number] ?? 'unknown';
    }
    return 'unknown';
  } finally {
    if (isOurs) await storage.close();
  }
}

function storageOf(source: Source): ByteStorage {
  if (typeof source === 'string' || source instanceof URL)
    return /^https?:\/\//i.test(String(source)) ? httpStorage(source) : openForReading(source);
  return source instanceof Blob ? blobStorage(source) : source;
}
