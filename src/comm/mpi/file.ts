import { closeSync, openSync } from 'node:fs';
import { resolve } from 'node:path';
import { H5LogError } from '../../base/errors.ts';
import { onAllRanks } from '../agreement.ts';
import type { CollectiveFile, Communicator } from '../communicator.ts';
import type { FileCalls, Handle } from './binding.ts';
import type { Job } from './job.ts';

/** Opens an existing file for writing through MPI-IO. Every call is collective, and every error is thrown on all ranks. */
export function openMpiFile(comm: Communicator, path: string): CollectiveFile {
  if (!isOfMpi(comm)) {
    const message = `MPI-IO needs the communicator that mpi() gives; this one is of kind ${comm.kind}`;
    throw new H5LogError('UNSUPPORTED', message, { file: path });
  }
  return new OpenFile(comm, path);
}

/** What a file needs of an MPI communicator. Not the class: that one imports this module. */
interface MpiRanks extends Communicator {
  readonly job: Job;
  readonly handle: Handle;
}

function isOfMpi(comm: Communicator): comm is MpiRanks {
  return comm.kind === 'mpi' && 'job' in comm;
}

/** The most bytes that one call writes: counts are int32. */
const maxWrite = 2 ** 30;
/** Parts smaller than a quarter of this are copied into buffers of this size, so that a thousand of them are not a thousand calls. */
const bufferSize = 4 * 2 ** 20;

class OpenFile implements CollectiveFile {
  readonly #comm: MpiRanks;
  readonly #calls: FileCalls;
  readonly #path: string;
  readonly #cell = new BigInt64Array(new ArrayBuffer(8));
  readonly #status = new BigInt64Array(new ArrayBuffer(64));
  readonly #written = new Int32Array(new ArrayBuffer(4));
  #buffer: Uint8Array | undefined;
  #closed = false;

  constructor(comm: MpiRanks, path: string) {
    this.#comm = comm;
    this.#path = path;
    const { binding } = comm.job;
    const { constants } = binding;
    this.#calls = binding.fileCalls();
    // Tried without MPI first: if only some ranks can open the file, MPI_File_open leaves the others with one that they cannot close.
    onAllRanks(comm, () => this.#probe());
    onAllRanks(comm, () => {
      const handler = binding.errorsReturn();
      this.#check(this.#calls.File_set_errhandler(constants.FILE_NULL, handler), 'open');
      const { MODE_RDWR, INFO_NULL } = constants;
      this.#check(this.#calls.File_open(comm.handle, this.#nameForMpi(), MODE_RDWR, INFO_NULL, this.#cell), 'open');
      this.#check(this.#calls.File_set_errhandler(this.#file, handler), 'open');
    });
  }

  writeAtAll(parts: readonly Uint8Array[], offset: number): void {
    this.#mustBeOpen();
    const { binding } = this.#comm.job;
    const { BYTE } = binding.constants;
    const rounds = planRounds(parts);
    const [most = 0] = this.#comm.allreduce(Float64Array.of(rounds.length), 'max');
    // If a collective write fails on one rank, Open MPI leaves the others waiting forever (seen with a full disk). With it, each
    // rank writes independently; its data is contiguous, so there is little to lose.
    const call = /Open MPI/i.test(binding.version) ? this.#calls.File_write_at : this.#calls.File_write_at_all;
    onAllRanks(this.#comm, () => {
      let failure: unknown;
      let position = offset;
      // All ranks take part in all rounds, even if they have nothing more to write or have failed.
      for (let round = 0; round < most; round++) {
        const bytes = failure === undefined ? this.#collect(rounds[round] ?? []) : nothing;
        const code = call(this.#file, position, bytes, bytes.length, BYTE, this.#status);
        try {
          this.#check(code, 'write', position);
          this.#checkWritten(bytes.length, position);
        } catch (error) {
          failure ??= error;
        }
        position += bytes.length;
      }
      if (failure !== undefined) throw failure;
    });
  }

  sync(): void {
    this.#mustBeOpen();
    this.#comm.barrier();
    onAllRanks(this.#comm, () => this.#check(this.#calls.File_sync(this.#file), 'sync'));
  }

  close(): void {
    if (this.#closed) return;
    this.#comm.barrier();
    this.#closed = true;
    onAllRanks(this.#comm, () => this.#check(this.#calls.File_close(this.#cell), 'close'));
  }

  get #file(): number {
    return Number(this.#cell[0]);
  }

  #probe(): void {
    try {
      closeSync(openSync(this.#path, 'r+'));
    } catch (cause) {
      const missing = (cause as NodeJS.ErrnoException).code === 'ENOENT';
      throw this.#error(`cannot be opened: ${(cause as Error).message}`, missing ? 'NOT_FOUND' : 'STORAGE');
    }
  }

  /** ROMIO, the MPI-IO of MPICH, takes the text before a colon for the name of a file system. */
  #nameForMpi(): string {
    const path = resolve(this.#path);
    return path.includes(':') && this.#comm.job.binding.abi !== 'ompi' ? `ufs:${path}` : path;
  }

  /** Copies the parts of a round into one buffer. */
  #collect(parts: readonly Uint8Array[]): Uint8Array {
    const [first = nothing] = parts;
    if (parts.length <= 1) return first;
    this.#buffer ??= new Uint8Array(bufferSize);
    let end = 0;
    for (const part of parts) {
      this.#buffer.set(part, end);
      end += part.length;
    }
    return this.#buffer.subarray(0, end);
  }

  /** Checks the number of bytes written: a full disk may show only there. */
  #checkWritten(expected: number, offset: number): void {
    const { BYTE } = this.#comm.job.binding.constants;
    this.#check(this.#calls.Get_count(this.#status, BYTE, this.#written), 'write', offset);
    const [written = 0] = this.#written;
    if (written !== expected) {
      throw this.#error(`MPI wrote ${written} of ${expected} bytes`, 'STORAGE', offset);
    }
  }

  #check(code: number, what: string, offset?: number): void {
    if (code === 0) return;
    throw this.#error(`cannot ${what}: ${this.#comm.job.binding.errorText(code)}`, 'STORAGE', offset);
  }

  #error(text: string, code: 'STORAGE' | 'NOT_FOUND', offset?: number): H5LogError {
    const { rank } = this.#comm.job;
    return new H5LogError(code, `${this.#path}: ${text}`, { file: this.#path, offset, rank });
  }

  #mustBeOpen(): void {
    if (this.#closed) throw new H5LogError('CLOSED', `${this.#path} is closed`, { file: this.#path });
  }
}

const nothing = new Uint8Array(0);

/** The parts that each call writes: one large part or a slice of it, or many small ones. */
function planRounds(parts: readonly Uint8Array[]): Uint8Array[][] {
  const rounds: Uint8Array[][] = [];
  let room = 0;
  for (const part of parts) {
    if (part.length === 0) continue;
    if (part.length > bufferSize / 4) {
      for (let from = 0; from < part.length; from += maxWrite) rounds.push([part.subarray(from, from + maxWrite)]);
      room = 0;
      continue;
    }
    if (part.length > room) {
      rounds.push([]);
      room = bufferSize;
    }
    rounds.at(-1)?.push(part);
    room -= part.length;
  }
  return rounds;
}
