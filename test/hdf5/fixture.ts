import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { expect } from 'vitest';
import { isH5LogError } from '../../src/base/errors.ts';
import { Cursor } from '../../src/hdf5/format/cursor.ts';
import { FileBytes } from '../../src/hdf5/format/file-bytes.ts';
import { readSuperblock, type Superblock } from '../../src/hdf5/format/superblock.ts';
import { driveSync, type Io } from '../../src/storage/io.ts';
import { memoryStorage } from '../../src/storage/memory.ts';

/** What h5py and h5debug say about an object, written by test/fixtures/hdf5/make.py; say.ts says the same of what h5log parsed. */
export interface ExpectedObject {
  /** libhdf5 does not open the object, for this reason. The other fields are missing then. */
  readonly refused?: string;
  readonly address: number;
  readonly header: string;
  readonly messages: string;
  readonly links?: readonly string[] | string;
  readonly attributes?: readonly string[];
  readonly type?: string;
  readonly space?: string;
  readonly fill?: string;
  readonly layout?: string;
  readonly filters?: readonly string[];
  readonly chunks?: string;
  readonly mappings?: readonly string[];
  readonly values?: string;
}

interface ExpectedFile {
  readonly superblock: string;
  readonly objects: Readonly<Record<string, ExpectedObject>>;
}

const FOLDER = new URL('../fixtures/hdf5/', import.meta.url);
const expected = JSON.parse(readFileSync(new URL('expected.json', FOLDER), 'utf8')) as Record<string, ExpectedFile>;

/** Every file that is described. */
export const FIXTURES: readonly string[] = Object.keys(expected);

const unpacked = new Map<string, Uint8Array>();

/** The bytes of a file that libhdf5 wrote; a copy, so that a test may damage them. */
export function fixtureBytes(name: string): Uint8Array {
  let bytes = unpacked.get(name);
  if (!bytes) {
    bytes = new Uint8Array(gunzipSync(readFileSync(new URL(`${name}.h5.gz`, FOLDER))));
    unpacked.set(name, bytes);
  }
  return bytes.slice();
}

/** A file of libhdf5's in memory, with what is expected of it. */
export class Fixture {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly superblock: Superblock;
  readonly file: FileBytes;

  constructor(name: string, bytes = fixtureBytes(name)) {
    this.name = name;
    this.bytes = bytes;
    this.superblock = this.run(readSuperblock());
    const { base, end, addressSize, lengthSize } = this.superblock;
    this.file = new FileBytes(base, end, addressSize, lengthSize);
  }

  get expected(): ExpectedFile {
    return expected[this.name] as ExpectedFile;
  }

  /** The objects that libhdf5 opens, with their paths. */
  get objects(): [path: string, object: ExpectedObject][] {
    return Object.entries(this.expected.objects).filter(([, object]) => object.refused === undefined);
  }

  object(path: string): ExpectedObject {
    const object = this.expected.objects[path];
    if (!object) throw new Error(`nothing is known of ${path} in ${this.name}`);
    return object;
  }

  run<T>(io: Io<T>): T {
    return driveSync(memoryStorage(this.bytes), io);
  }

  /** The same file with some bytes changed; read anew, so that no page is left of the intact one. */
  damaged(change: (bytes: Uint8Array) => void): Fixture {
    const bytes = this.bytes.slice();
    change(bytes);
    return new Fixture(this.name, bytes);
  }

  /** The bodies of an object's messages of a type, cut out where h5debug says they are: h5log's header parser has no part in it. */
  cut(path: string, type: number): Uint8Array[] {
    const wanted = `0x${type.toString(16).padStart(2, '0')}`;
    return this.object(path)
      .messages.split(', ')
      .filter((message) => message.startsWith(`${wanted}:`))
      .map((message) => {
        const [size, at] = message.slice(wanted.length + 2).split(' at ');
        const from = this.superblock.base + Number.parseInt(at as string, 10);
        return this.bytes.slice(from, from + Number(size));
      });
  }

  /** The only message of a type. */
  one(path: string, type: number): Uint8Array {
    const found = this.cut(path, type);
    if (found.length !== 1) throw new Error(`${found.length} messages of type ${type} at ${path} in ${this.name}`);
    return found[0] as Uint8Array;
  }
}

/** Runs code that reads a file of these bytes. */
export function runOn<T>(bytes: Uint8Array, io: Io<T>): T {
  return driveSync(memoryStorage(bytes), io);
}

/** Fails unless `work` refuses damaged bytes: with the code FORMAT, and not with an error of JavaScript's. */
export function expectFormat(work: () => unknown, what = ''): void {
  let thrown: unknown;
  try {
    work();
  } catch (error) {
    thrown = error;
  }
  if (!isH5LogError(thrown, 'FORMAT'))
    expect.fail(`${what || 'damaged bytes'}: expected an error with code FORMAT, got ${thrown ?? 'none'}`);
}

/** Fails unless a parser refuses every beginning of what it consumes. Returns how many bytes that are. */
export function expectNoTruncation(bytes: Uint8Array, parse: (cursor: Cursor) => unknown): number {
  const whole = new Cursor(bytes, 0);
  parse(whole);
  for (let length = 0; length < whole.at; length++)
    expectFormat(() => parse(new Cursor(bytes.slice(0, length), 0)), `the first ${length} of ${whole.at} bytes`);
  return whole.at;
}

/** Changes one byte into every other kind of wrong: all bits, the lowest and the highest. */
export const FLIPS: readonly number[] = [0xff, 0x01, 0x80];

export const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
