// Data in other files: the external data files message (HDF5 file format specification, IV.A.2.h) and the bytes it leads to.

import { formatError, H5LogError } from '../../base/errors.ts';
import type { Io } from '../../storage/io.ts';
import type { ByteStorage } from '../../storage/storage.ts';
import { Cursor, UNDEFINED } from '../format/cursor.ts';
import { Budget, type FileBytes } from '../format/file-bytes.ts';
import type { HeaderMessage } from '../graph/object-node.ts';
import { readLocalHeap } from '../read/symbol-table.ts';

/** Opens a file that another one names; null if there is none. */
export type OpenOther = (name: string) => ByteStorage | null;

/** A part of the data: so many bytes from `offset` of a file. */
export interface Slot {
  readonly name: string;
  readonly offset: number;
  readonly size: number;
}

/** The files that hold the data of a dataset, in their order. */
export function* externalBytes(file: FileBytes, message: HeaderMessage, open: OpenOther): Io<JoinedFiles> {
  return new JoinedFiles(yield* readSlots(file, message), open);
}

/** The parts of external data that a message names. */
export function* readSlots(file: FileBytes, message: HeaderMessage): Io<Slot[]> {
  const cursor = new Cursor(message.content, message.offset);
  cursor.expect(1, 'version of the external data files');
  cursor.skip(3);
  cursor.skip(2); // slots that there is room for
  const count = cursor.u16();
  const names = yield* readLocalHeap(file, cursor.address(file.addressSize), new Budget(file));
  const slots: Slot[] = [];
  for (let i = 0; i < count; i++) {
    const nameAt = cursor.uint(file.lengthSize);
    const offset = cursor.uint(file.lengthSize);
    const size = cursor.address(file.lengthSize);
    if (nameAt >= names.bytes.length) throw formatError('an external file without a name', message.offset);
    names.at = nameAt;
    const name = names.cstring('name of an external file');
    slots.push({ name, offset, size: size === UNDEFINED ? Infinity : size });
  }
  return slots;
}

/** The bytes of several files, one behind the other. What a file is too short for is zeros, as in libhdf5. */
export class JoinedFiles {
  readonly #slots: readonly Slot[];
  readonly #open: OpenOther;

  constructor(slots: readonly Slot[], open: OpenOther) {
    this.#slots = slots;
    this.#open = open;
  }

  *read(address: number, length: number, what: string): Io<Uint8Array> {
    this.mustHold(address, length, what);
    const bytes = new Uint8Array(length);
    yield* this.readInto(bytes, address, what);
    return bytes;
  }

  *readInto(into: Uint8Array, address: number, what: string): Io<void> {
    this.mustHold(address, into.length, what);
    let begin = 0;
    for (const { name, offset, size } of this.#slots) {
      const from = Math.max(address, begin);
      const to = Math.min(address + into.length, begin + size);
      if (to > from) {
        const part = into.subarray(from - address, to - address);
        const storage = this.#open(name);
        if (!storage) throw new H5LogError('STORAGE', `the external file ${name} is missing`, { file: name });
        const count = yield { op: 'read', into: part, offset: offset + from - begin, on: storage };
        part.fill(0, count);
      }
      begin += size;
    }
  }

  mustHold(address: number, length: number, what: string): void {
    const total = this.#slots.reduce((sum, { size }) => sum + size, 0);
    if (address + length > total)
      throw formatError(`${what} of ${address + length} bytes in external files of ${total}`);
  }
}
