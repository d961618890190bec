// The only file that deals with the MPI library itself: where it is, which of three binary interfaces (ABIs) it has, their
// constants, and the functions, each under its name in the standard. The library is loaded by mpi(), never at import.
import { createRequire } from 'node:module';
import { H5LogError } from '../../base/errors.ts';
import type { Launcher } from '../launcher.ts';

/** Binary interfaces: Open MPI; MPICH and compatible libraries (Intel, MVAPICH, Cray); the standard ABI of MPI 5. */
export type Abi = 'ompi' | 'mpich' | 'std';

/** An MPI handle (communicator, datatype, operation, file...): an int32, or an address, which is below 2^53. */
export type Handle = number;

/** Memory that MPI writes handles into: one handle, or an array of requests. */
export type HandleCell = Int32Array | BigInt64Array;

type Bytes = ArrayBufferView | null;
type Status = ArrayBufferView;

/** The MPI functions that the communicator uses. Each returns 0 or an error code. */
interface Calls {
  Init_thread(argc: 0, argv: 0, required: number, provided: Int32Array): number;
  Initialized(flag: Int32Array): number;
  Finalized(flag: Int32Array): number;
  Query_thread(provided: Int32Array): number;
  Finalize(): number;
  Abort(comm: Handle, code: number): number;
  Error_string(code: number, text: Uint8Array, length: Int32Array): number;
  Comm_rank(comm: Handle, rank: Int32Array): number;
  Comm_size(comm: Handle, size: Int32Array): number;
  Comm_dup(comm: Handle, result: HandleCell): number;
  Comm_idup(comm: Handle, result: HandleCell, request: HandleCell): number;
  Comm_split(comm: Handle, color: number, key: number, result: HandleCell): number;
  Comm_free(comm: HandleCell): number;
  Comm_set_errhandler(comm: Handle, handler: Handle): number;
  Ibarrier(comm: Handle, request: HandleCell): number;
  Ibcast(bytes: Bytes, count: number, type: Handle, root: number, comm: Handle, request: HandleCell): number;
  Iallreduce(
    send: Bytes,
    receive: Bytes,
    count: number,
    type: Handle,
    op: Handle,
    comm: Handle,
    request: HandleCell,
  ): number;
  Iexscan(
    send: Bytes,
    receive: Bytes,
    count: number,
    type: Handle,
    op: Handle,
    comm: Handle,
    request: HandleCell,
  ): number;
  Igather(
    send: Bytes,
    count: number,
    type: Handle,
    receive: Bytes,
    countEach: number,
    typeEach: Handle,
    root: number,
    comm: Handle,
    request: HandleCell,
  ): number;
  Iallgather(
    send: Bytes,
    count: number,
    type: Handle,
    receive: Bytes,
    countEach: number,
    typeEach: Handle,
    comm: Handle,
    request: HandleCell,
  ): number;
  Iallgatherv(
    send: Bytes,
    count: number,
    type: Handle,
    receive: Bytes,
    counts: Int32Array,
    displacements: Int32Array,
    typeEach: Handle,
    comm: Handle,
    request: HandleCell,
  ): number;
  Isend(bytes: Bytes, count: number, type: Handle, to: number, tag: number, comm: Handle, request: HandleCell): number;
  Irecv(
    bytes: Bytes,
    count: number,
    type: Handle,
    from: number,
    tag: number,
    comm: Handle,
    request: HandleCell,
  ): number;
  Iprobe(from: number, tag: number, comm: Handle, flag: Int32Array, status: number): number;
  Testall(count: number, requests: HandleCell, flag: Int32Array, statuses: number): number;
}

/** The functions of MPI-IO, which a library may have been built without. */
export interface FileCalls {
  File_open(comm: Handle, path: string, mode: number, info: Handle, file: BigInt64Array): number;
  File_set_errhandler(file: number, handler: Handle): number;
  File_write_at(file: number, offset: number, bytes: Bytes, count: number, type: Handle, status: Status): number;
  File_write_at_all(file: number, offset: number, bytes: Bytes, count: number, type: Handle, status: Status): number;
  File_sync(file: number): number;
  File_close(file: BigInt64Array): number;
  Get_count(status: Status, type: Handle, count: Int32Array): number;
}

// One word per argument. `at`: pointer to our memory; `cell`: pointer to a handle; `handle`, `file`: handles by value.
const signatures: Readonly<Record<keyof Calls, string>> = {
  Init_thread: 'address address int at',
  Initialized: 'at',
  Finalized: 'at',
  Query_thread: 'at',
  Finalize: '',
  Abort: 'handle int',
  Error_string: 'int at at',
  Comm_rank: 'handle at',
  Comm_size: 'handle at',
  Comm_dup: 'handle cell',
  Comm_idup: 'handle cell cell',
  Comm_split: 'handle int int cell',
  Comm_free: 'cell',
  Comm_set_errhandler: 'handle handle',
  Ibarrier: 'handle cell',
  Ibcast: 'at int handle int handle cell',
  Iallreduce: 'at at int handle handle handle cell',
  Iexscan: 'at at int handle handle handle cell',
  Igather: 'at int handle at int handle int handle cell',
  Iallgather: 'at int handle at int handle handle cell',
  Iallgatherv: 'at int handle at at at handle handle cell',
  Isend: 'at int handle int int handle cell',
  Irecv: 'at int handle int int handle cell',
  Iprobe: 'int int handle at address',
  Testall: 'int cell at address',
};

const fileSignatures: Readonly<Record<keyof FileCalls, string>> = {
  File_open: 'handle text int handle cell',
  File_set_errhandler: 'file handle',
  File_write_at: 'file offset at int handle at',
  File_write_at_all: 'file offset at int handle at',
  File_sync: 'file',
  File_close: 'cell',
  Get_count: 'at handle at',
};

/** The functions that a library must have for a communicator. */
export const requiredCalls: readonly string[] = Object.keys(signatures).map((name) => `MPI_${name}`);

interface Constants {
  readonly COMM_WORLD: Handle;
  readonly BYTE: Handle;
  readonly DOUBLE: Handle;
  readonly SUM: Handle;
  readonly MIN: Handle;
  readonly MAX: Handle;
  /** Missing for `std`, where published tables differ. {@link Binding.errorsReturn} asks the library. */
  readonly ERRORS_RETURN?: Handle;
  readonly INFO_NULL: Handle;
  readonly FILE_NULL: Handle;
  readonly STATUS_IGNORE: number;
  readonly STATUSES_IGNORE: number;
  readonly THREAD_FUNNELED: number;
  readonly MODE_RDWR: number;
}

// Open MPI's handles are the addresses of these variables of the library.
const ompiSymbols = {
  COMM_WORLD: 'ompi_mpi_comm_world',
  BYTE: 'ompi_mpi_byte',
  DOUBLE: 'ompi_mpi_double',
  SUM: 'ompi_mpi_op_sum',
  MIN: 'ompi_mpi_op_min',
  MAX: 'ompi_mpi_op_max',
  ERRORS_RETURN: 'ompi_mpi_errors_return',
  INFO_NULL: 'ompi_mpi_info_null',
  FILE_NULL: 'ompi_mpi_file_null',
} as const;

const ompiNumbers = { STATUS_IGNORE: 0, STATUSES_IGNORE: 0, THREAD_FUNNELED: 1, MODE_RDWR: 8 } as const;

const mpichConstants: Constants = {
  COMM_WORLD: 0x44000000,
  BYTE: 0x4c00010d,
  DOUBLE: 0x4c00080b,
  SUM: 0x58000003,
  MIN: 0x58000002,
  MAX: 0x58000001,
  ERRORS_RETURN: 0x54000001,
  INFO_NULL: 0x1c000000,
  FILE_NULL: 0,
  STATUS_IGNORE: 1,
  STATUSES_IGNORE: 1,
  THREAD_FUNNELED: 1,
  MODE_RDWR: 8,
};

const stdConstants: Constants = {
  COMM_WORLD: 0x101,
  BYTE: 0x247,
  DOUBLE: 0x214,
  SUM: 0x21,
  MIN: 0x22,
  MAX: 0x23,
  INFO_NULL: 0x130,
  FILE_NULL: 0x118,
  STATUS_IGNORE: 0,
  STATUSES_IGNORE: 0,
  THREAD_FUNNELED: 1024,
  MODE_RDWR: 32,
};

/** The constants of each ABI: a number, or the variable whose address is the handle. */
export const knownConstants: Readonly<Record<Abi, Readonly<Record<string, number | string>>>> = {
  ompi: { ...ompiSymbols, ...ompiNumbers },
  mpich: { ...mpichConstants },
  std: { ...stdConstants },
};

/** A loaded MPI library. */
export interface Binding {
  /** The name or path that it was loaded from; `version` is what it reports about itself. */
  readonly library: string;
  readonly version: string;
  readonly abi: Abi;
  readonly constants: Constants;
  readonly calls: Calls;
  fileCalls(): FileCalls;
  cells(count: number): HandleCell;
  /** sched_yield: lets another process run on this core. */
  yieldCore(): void;
  /** Number of bytes in a pipe that its reader has not read yet; undefined where the system does not tell. */
  unread(pipe: number): number | undefined;
  errorText(code: number): string;
  /** MPI_ERRORS_RETURN: with this handler, calls return error codes instead of aborting the job. Only between MPI_Init and MPI_Finalize. */
  errorsReturn(): Handle;
}

// The part of koffi that is used here. Declared again, so that our types compile where koffi is not installed.
interface Koffi {
  load(path: string): Library;
  address(value: unknown): bigint;
}
interface Library {
  func(name: string, result: string, args: string[]): (...args: unknown[]) => number;
  func(prototype: string): (...args: unknown[]) => number;
  symbol(name: string): unknown;
}

/** Loads the MPI library: `named`, or MPI_LIB, or the first of the usual names that exists. */
export function loadBinding(named: string | undefined, launcher: Launcher | undefined): Binding {
  const koffi = loadKoffi();
  // UCX would install a handler for SIGSEGV, which V8 needs, and patch the system calls of malloc while threads of Node are inside
  // them: 4 ranks of MPICH crashed in MPI_Init in 2 of 30 jobs.
  process.env.UCX_ERROR_SIGNALS ??= '';
  process.env.UCX_MEM_EVENTS ??= 'n';
  const { library, name, origin } = findLibrary(koffi, named, launcher);
  return bind(koffi, library, name, origin);
}

function loadKoffi(): Koffi {
  try {
    return createRequire(import.meta.url)('koffi') as Koffi;
  } catch (cause) {
    const missing = (cause as { code?: unknown }).code === 'MODULE_NOT_FOUND';
    const reason = missing ? 'is not installed' : `cannot be loaded: ${(cause as Error).message}`;
    const message = `mpi() needs the package koffi, which ${reason}; npm install koffi`;
    throw new H5LogError('UNSUPPORTED', message, { cause });
  }
}

const usualNames = ['libmpi.so.40', 'libmpich.so.12', 'libmpi.so.12', 'libmpi_abi.so.1', 'libmpi_abi.so.0'];
const pmiNames = ['libmpich.so.12', 'libmpi.so.12', 'libmpi_abi.so.1', 'libmpi_abi.so.0', 'libmpi.so.40'];
const macNames = ['libmpi.40.dylib', 'libmpi.12.dylib', 'libmpi.dylib'];

/** The library names to try. Under a PMI launcher MPICH and compatible libraries come first. */
export function libraryNames(launcher: Launcher | undefined): readonly string[] {
  if (process.platform === 'darwin') return macNames;
  return launcher?.kind === 'pmi' ? pmiNames : usualNames;
}

function findLibrary(koffi: Koffi, named: string | undefined, launcher: Launcher | undefined) {
  const chosen = named ?? (process.env.MPI_LIB || undefined);
  const origin = named === undefined ? 'MPI_LIB' : 'the option library';
  const failures: string[] = [];
  for (const name of chosen === undefined ? libraryNames(launcher) : [chosen]) {
    try {
      return { library: koffi.load(name), name, origin: chosen === undefined ? undefined : origin };
    } catch (cause) {
      const reason = (cause as Error).message.replace('Failed to load shared library: ', '');
      if (chosen !== undefined) {
        throw new H5LogError('COMM', `${origin} is ${name}, which cannot be loaded: ${reason}`, { cause });
      }
      failures.push(`${name}: ${reason}`);
    }
  }
  const tried = failures.map((failure) => `\n  ${failure}`).join('');
  throw new H5LogError('COMM', `no MPI library found; install one or set MPI_LIB to its path. Tried:${tried}`);
}

const ioctlType = 'int ioctl(int descriptor, unsigned long request, ...)';

function bind(koffi: Koffi, library: Library, name: string, origin: string | undefined): Binding {
  if (!has(library, 'MPI_Init_thread')) {
    const which = origin === undefined ? name : `${origin} is ${name}, which`;
    throw new H5LogError('COMM', `${which} is not an MPI library: it has no MPI_Init_thread`);
  }
  const version = libraryVersion(library);
  const abi = detectAbi(library, version, name);
  const handle = abi === 'mpich' ? 'int32_t' : 'intptr_t';
  const types: Readonly<Record<string, string>> = {
    address: 'intptr_t',
    at: 'void *',
    cell: 'void *',
    file: 'intptr_t',
    handle,
    int: 'int',
    offset: 'int64_t',
    text: 'const char *',
  };
  const lookup = <Table extends object>(table: Readonly<Record<keyof Table, string>>): Table => {
    const found: Record<string, unknown> = {};
    for (const [call, words] of Object.entries<string>(table)) {
      const args = words.split(' ').filter((word) => word !== '');
      try {
        found[call] = library.func(
          `MPI_${call}`,
          'int',
          args.map((word) => types[word] ?? word),
        );
      } catch (cause) {
        throw new H5LogError('UNSUPPORTED', `${name} (${version}) has no MPI_${call}`, { cause });
      }
    }
    return found as Table;
  };
  const calls = lookup<Calls>(signatures);
  let fileCalls: FileCalls | undefined;
  let handler: Handle | undefined;
  const yieldCore = has(library, 'sched_yield') ? library.func('sched_yield', 'int', []) : () => 0;
  // For FIONREAD, which Linux supports at the writing end of a pipe too.
  const ioctl = process.platform === 'linux' && has(library, 'ioctl') ? library.func(ioctlType) : undefined;
  const pending = new Int32Array(1);
  const constants = constantsOf(koffi, library, abi);
  const cells = (count: number): HandleCell => {
    const memory = new ArrayBuffer(8 * count);
    return abi === 'mpich' ? new Int32Array(memory, 0, count) : new BigInt64Array(memory);
  };
  return {
    // koffi unloads a library that nothing refers to; `calls` keeps it loaded.
    library: name,
    version,
    abi,
    constants,
    calls,
    fileCalls() {
      fileCalls ??= lookup<FileCalls>(fileSignatures);
      return fileCalls;
    },
    cells,
    yieldCore,
    unread(pipe) {
      return ioctl?.(pipe, 0x541b, 'int *', pending) === 0 ? pending[0] : undefined;
    },
    errorText(code) {
      const text = new Uint8Array(8192);
      const length = new Int32Array(1);
      if (calls.Error_string(code, text, length) !== 0) return `MPI error ${code}`;
      return new TextDecoder().decode(text.subarray(0, length[0]));
    },
    errorsReturn() {
      handler ??= errorsReturn(library, constants, cells(1));
      return handler;
    },
  };
}

function errorsReturn(library: Library, constants: Constants, cell: HandleCell): Handle {
  if (constants.ERRORS_RETURN !== undefined && !has(library, 'MPI_File_get_errhandler')) return constants.ERRORS_RETURN;
  // The standard says that MPI_ERRORS_RETURN is the default handler of files, so MPI_FILE_NULL has it.
  library.func('MPI_File_get_errhandler', 'int', ['intptr_t', 'void *'])(constants.FILE_NULL, cell);
  return Number(cell[0]);
}

/** The library's name and version; MPI_Get_library_version may be called before MPI_Init. */
function libraryVersion(library: Library): string {
  if (!has(library, 'MPI_Get_library_version')) return 'of an unknown version';
  const text = new Uint8Array(16384);
  const length = new Int32Array(1);
  library.func('MPI_Get_library_version', 'int', ['void *', 'void *'])(text, length);
  // MPICH returns many lines, and Open MPI counts the final zero.
  const whole = new TextDecoder().decode(text.subarray(0, length[0]));
  return (/^[^\n\0,]*/.exec(whole)?.[0] ?? '').replaceAll(/\s+/g, ' ').trim();
}

function detectAbi(library: Library, version: string, name: string): Abi {
  if (has(library, 'MPI_Abi_get_version')) {
    const major = new Int32Array(1);
    const minor = new Int32Array(1);
    library.func('MPI_Abi_get_version', 'int', ['void *', 'void *'])(major, minor);
    if ((major[0] ?? 0) > 0) return 'std';
  }
  if (has(library, ompiSymbols.COMM_WORLD)) return 'ompi';
  // Wrong constants cause a segmentation fault, so an unknown library is not tried.
  if (/MPICH|Intel|MVAPICH|CRAY|ParaStation/i.test(version)) return 'mpich';
  const message = `the binary interface of ${name} (${version}) is unknown; known are those of Open MPI, MPICH and MPI 5`;
  throw new H5LogError('UNSUPPORTED', message);
}

function constantsOf(koffi: Koffi, library: Library, abi: Abi): Constants {
  if (abi === 'mpich') return mpichConstants;
  if (abi === 'std') {
    return stdConstants;
  }
  const handles = Object.entries(ompiSymbols).map(([constant, symbol]) => {
    return [constant, Number(koffi.address(library.symbol(symbol)))];
  });
  return { ...(Object.fromEntries(handles) as Record<keyof typeof ompiSymbols, Handle>), ...ompiNumbers };
}

function has(library: Library, name: string): boolean {
  try {
    library.symbol(name);
    return true;
  } catch {
    return false;
  }
}
