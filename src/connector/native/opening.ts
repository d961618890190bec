import { pathOf } from '#platform';
import { H5LogError } from '../../base/errors.ts';
import type { Communicator } from '../../comm/communicator.ts';
import { solo } from '../../comm/solo.ts';
import { bytesOf, memoryStorage } from '../../storage/memory.ts';
import { type ByteStorage, bytesError, checkStorage, isPath } from '../../storage/storage.ts';
import type { Openable } from '../opening.ts';
import {
  type CommonOptions,
  type CreateOptions,
  checkCreateOptions,
  checkOpenOptions,
  type OpenOptions,
} from '../options.ts';
import type { Library } from './library.ts';
import { NativeFile } from './native-file.ts';
import { NativeSession } from './native-session.ts';

interface OpenNative {
  readonly session: NativeSession;
  /** As the user gave it; each rank reads for itself. */
  readonly comm: Communicator;
}

export function createNative(library: Library, target: string | URL | ByteStorage, options: CreateOptions): OpenNative {
  checkCreateOptions(options);
  const comm = commOf(options, true);
  if (options.subfiles) throw new H5LogError('OPTION', 'the native connector has no subfiles');
  return { session: sessionOf(NativeFile.create(library, sourceOf(target), options.exclusive), options), comm };
}

export function openNative(library: Library, source: Openable, options: OpenOptions): OpenNative {
  checkOpenOptions(options);
  const mode = options.mode === 'a' ? 'r+' : (options.mode ?? 'r');
  const comm = commOf(options, mode === 'r+');
  if (options.asOf !== undefined)
    throw new H5LogError('UNSUPPORTED', 'a regular file keeps no earlier states: asOf needs a log');
  if (mode === 'r+' && bytesOf(source)) throw bytesError();
  return { session: sessionOf(NativeFile.open(library, sourceOf(source), mode), options), comm };
}

const sessionOf = (file: NativeFile, { durability }: CommonOptions): NativeSession =>
  new NativeSession(file, solo(), durability === 'power');

function commOf({ comm, storage }: CommonOptions, writing: boolean): Communicator {
  if (writing && comm && comm.size > 1)
    throw new H5LogError('UNSUPPORTED', 'several ranks can only read through the native connector');
  if (storage === 'mpi-io') throw new H5LogError('OPTION', `storage 'mpi-io' is for the log connector`);
  return comm ?? solo();
}

function sourceOf(source: Openable): string | ByteStorage {
  if (isPath(source)) return pathOf(source);
  if (typeof Blob !== 'undefined' && source instanceof Blob)
    throw new H5LogError('UNSUPPORTED', 'libhdf5 cannot wait for a Blob; read it into memoryStorage(bytes) first');
  const bytes = bytesOf(source);
  if (bytes) return memoryStorage(bytes);
  checkStorage(source);
  return source as ByteStorage;
}
