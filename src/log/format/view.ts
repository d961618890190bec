import { allocate } from '../../base/buffers.ts';
import { formatError } from '../../base/errors.ts';
import { putU64 } from '../../hdf5/format/byte-writer.ts';
import { Cursor } from '../../hdf5/format/cursor.ts';
import type { ObjectNode } from '../../hdf5/graph/object-node.ts';
import { simpleSpace } from '../../hdf5/messages/dataspace.ts';
import { expectChange, setPlainAttribute } from '../../hdf5/write/attributes.ts';
import type { Structure } from '../../hdf5/write/structure.ts';
import { mayGrow } from '../../space/shape.ts';
import type { Io } from '../../storage/io.ts';
import { TOKEN_SIZE, type Token } from './log-group.ts';
import { VIEW } from './names.ts';

/** How the ordinary layout of a dataset came about. */
export type PublishWay = 'empty' | 'contiguous' | 'chunked' | 'virtual' | 'copied' | 'ordinary';

/** The numbers of the ways in the file. */
const WAYS: readonly PublishWay[] = ['empty', 'contiguous', 'chunked', 'virtual', 'copied'];

/** What every HDF5 program sees of a dataset of the log. */
export interface View {
  /** Of the file that published it: in another one the layout is all there is. */
  readonly token: Token;
  readonly id: number;
  /** The commit that is shown. */
  readonly sequence: number;
  /** Blocks of the log below this file offset are in the layout. */
  readonly end: number;
  readonly way: PublishWay;
  /** Of the dataspace when it was published. Another program may have changed it since. */
  readonly shape: readonly number[];
  /** The smallest extent since then; what the layout holds outside of it is gone. null: never smaller than `shape`. */
  readonly cut: readonly number[] | null;
}

/** Numbers between the token and the shape: ID, sequence, end, way, rank. */
const NUMBERS = 5;

export function writeView(structure: Structure, node: ObjectNode, view: View): void {
  const { token, id, sequence, end, way, shape, cut } = view;
  const numbers = [id, sequence, end, WAYS.indexOf(way), shape.length, ...shape, ...(cut ?? [])];
  const bytes = allocate(TOKEN_SIZE + 8 * numbers.length);
  bytes.set(token.subarray(0, TOKEN_SIZE));
  const data = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  numbers.forEach((number, i) => {
    putU64(data, TOKEN_SIZE + 8 * i, number);
  });
  setPlainAttribute(structure, node, VIEW, 'int64', simpleSpace([bytes.length / 8]), bytes);
  if (!import.meta.page) {
    const { space } = structure.dataset(node);
    if (space.kind === 'simple' && mayGrow(space.shape, space.maxShape)) expectChange(structure, node, VIEW);
  }
}

export function* readView(structure: Structure, node: ObjectNode): Io<View | null> {
  const value = yield* structure.attribute(node, VIEW);
  if (!(value instanceof BigInt64Array)) return null;
  const offset = structure.loader.file.base + node.address;
  const bytes = new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  const rank = value.length >= 2 + NUMBERS ? Number(value[1 + NUMBERS]) : -1;
  const sizes = value.length - 2 - NUMBERS;
  if (rank < 0 || (sizes !== rank && sizes !== 2 * rank)) throw formatError('a view of wrong length', offset);
  const cursor = new Cursor(bytes, offset, TOKEN_SIZE);
  const [id, sequence, end, way] = [cursor.u64(), cursor.u64(), cursor.u64(), cursor.u64()];
  cursor.u64();
  const shape = Array.from({ length: rank }, () => cursor.u64());
  return {
    token: bytes.slice(0, TOKEN_SIZE),
    id,
    sequence,
    end,
    way: WAYS[way] ?? cursor.fail(`a dataset published in way ${way}`),
    shape,
    cut: rank > 0 && sizes === 2 * rank ? Array.from({ length: rank }, () => cursor.u64()) : null,
  };
}
