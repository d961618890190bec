import { formatError, H5LogError } from '../../base/errors.ts';
import { type Encoded, encodeValues } from '../../dtype/encode.ts';
import { readUint32 } from '../../dtype/heap-ids.ts';
import type { DType } from '../../dtype/model.ts';
import type { Library } from './library.ts';
import type { Form } from './memory-form.ts';

/** No heap collection begins at byte 1: heap ids with this address lead to {@link Packed.contents}. */
export const OWN_HEAP = 1;

/**
 * Elements as the file's type describes them, with a heap of their own for variable-length values. What is nested in a content
 * has its ids in the same heap.
 */
export interface Packed {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly contents: Uint8Array[];
}

/** Elements from h5wasm's memory, the first at `from`, written to `to` in file form from byte `at` on. */
export function unpack(
  library: Library,
  form: Form,
  from: number,
  count: number,
  to: Uint8Array,
  at: number,
  contents: Uint8Array[],
): void {
  const { bytes } = library;
  each(form, from, count, to, at);

  function each(form: Form, from: number, count: number, to: Uint8Array, at: number): void {
    if (form.kind === 'plain') to.set(bytes.subarray(from, from + count * form.size), at);
    else for (let i = 0; i < count; i++) one(form, from + i * form.size, to, at + i * form.fileSize);
  }

  function one(form: Form, from: number, to: Uint8Array, at: number): void {
    switch (form.kind) {
      case 'plain':
        to.set(bytes.subarray(from, from + form.size), at);
        return;
      case 'swapped':
        for (let b = 0; b < form.size; b++) to[at + b] = bytes[from + form.size - 1 - b] as number;
        return;
      case 'text': {
        const pointer = readUint32(bytes, from);
        const end = pointer === 0 ? 0 : bytes.indexOf(0, pointer);
        if (end < pointer) throw formatError('a text of variable length is damaged');
        if (end > pointer) keep(to, at, end - pointer, bytes.slice(pointer, end));
        return;
      }
      case 'sequence': {
        const length = readUint32(bytes, from);
        if (length === 0) return;
        const pointer = readUint32(bytes, from + 4);
        if (pointer + length * form.base.size > bytes.length) throw formatError('a list of variable length is damaged');
        const content = new Uint8Array(length * form.base.fileSize);
        each(form.base, pointer, length, content, 0);
        keep(to, at, length, content);
        return;
      }
      case 'array':
        each(form.base, from, form.count, to, at);
        return;
      case 'record':
        for (const field of form.fields) one(field.form, from + field.at, to, at + field.fileAt);
    }
  }

  function keep(to: Uint8Array, at: number, length: number, content: Uint8Array): void {
    putId(to, at, length, contents.length);
    contents.push(content);
  }
}

/** A caller's values in file form. `reference` gives the 8 bytes that stand for a path. */
export function packValues(
  dtype: DType,
  values: unknown,
  count: number,
  reference: (path: string) => Uint8Array,
): Packed {
  const contents: Uint8Array[] = [];
  const settle = ({ bytes, heap, references }: Encoded): Uint8Array => {
    for (const { at, path } of references) bytes.set(reference(path), at);
    for (const { at, length, content } of heap) {
      const settled = settle(content);
      putId(bytes, at, length, contents.length);
      contents.push(settled);
    }
    return bytes;
  };
  const bytes = settle(encodeValues(dtype, values, count));
  return { bytes: bytes as Uint8Array<ArrayBuffer>, contents };
}

/** Elements in h5wasm's memory, until they are freed. */
export class Placed {
  readonly #library: Library;
  readonly #pointers: number[] = [];
  readonly pointer: number;

  /** Copies `count` elements that begin at byte `at`. */
  constructor(library: Library, form: Form, packed: Packed, at: number, count: number, path: string) {
    this.#library = library;
    try {
      this.pointer = this.#place(form, packed.bytes, at, count, packed.contents, path);
    } catch (error) {
      this.free();
      throw error;
    }
  }

  free(): void {
    for (const pointer of this.#pointers.splice(0)) this.#library.free(pointer);
  }

  #allocate(size: number): number {
    const pointer = this.#library.allocate(size);
    this.#pointers.push(pointer);
    return pointer;
  }

  #place(
    form: Form,
    source: Uint8Array,
    at: number,
    count: number,
    contents: readonly Uint8Array[],
    path: string,
  ): number {
    const pointer = this.#allocate(count * form.size);
    if (form.kind === 'plain') this.#library.bytes.set(source.subarray(at, at + count * form.size), pointer);
    else {
      this.#library.bytes.fill(0, pointer, pointer + count * form.size);
      for (let i = 0; i < count; i++)
        this.#one(form, source, at + i * form.fileSize, pointer + i * form.size, contents, path);
    }
    return pointer;
  }

  #one(form: Form, source: Uint8Array, at: number, to: number, contents: readonly Uint8Array[], path: string): void {
    const { bytes } = this.#library;
    switch (form.kind) {
      case 'plain':
        bytes.set(source.subarray(at, at + form.size), to);
        return;
      case 'swapped':
        for (let b = 0; b < form.size; b++) bytes[to + b] = source[at + form.size - 1 - b] as number;
        return;
      case 'text': {
        const text = contentAt(source, at, contents) ?? new Uint8Array(0);
        if (text.includes(0)) {
          throw new H5LogError('DTYPE', `${path}: libhdf5 ends a variable-length string at its first NUL`, {
            object: path,
          });
        }
        const pointer = this.#allocate(text.length + 1);
        // The memory may have grown.
        this.#library.bytes.set(text, pointer);
        this.#library.bytes[pointer + text.length] = 0;
        this.#put(to, pointer);
        return;
      }
      case 'sequence': {
        const content = contentAt(source, at, contents);
        if (!content) return;
        const length = content.length / form.base.fileSize;
        const pointer = this.#place(form.base, content, 0, length, contents, path);
        this.#put(to, length);
        this.#put(to + 4, pointer);
        return;
      }
      case 'array':
        for (let i = 0; i < form.count; i++)
          this.#one(form.base, source, at + i * form.base.fileSize, to + i * form.base.size, contents, path);
        return;
      case 'record':
        for (const field of form.fields)
          this.#one(field.form, source, at + field.fileAt, to + field.at, contents, path);
    }
  }

  #put(at: number, value: number): void {
    putUint32(this.#library.bytes, at, value);
  }
}

function contentAt(bytes: Uint8Array, at: number, contents: readonly Uint8Array[]): Uint8Array | undefined {
  return readUint32(bytes, at + 4) === OWN_HEAP ? contents[readUint32(bytes, at + 12)] : undefined;
}

function putId(bytes: Uint8Array, at: number, length: number, index: number): void {
  putUint32(bytes, at, length);
  putUint32(bytes, at + 4, OWN_HEAP);
  putUint32(bytes, at + 8, 0);
  putUint32(bytes, at + 12, index);
}

function putUint32(bytes: Uint8Array, at: number, value: number): void {
  for (let b = 0; b < 4; b++) bytes[at + b] = (value >>> (8 * b)) & 0xff;
}
