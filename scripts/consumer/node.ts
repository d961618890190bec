// What a user's program looks like. Compiled strictly, with the declarations checked, and run from the packed tarball.
import {
  type Commit,
  type CreateOptions,
  type DType,
  File,
  type Group,
  H5LogError,
  isH5LogError,
  solo,
  T,
  type ValueOf,
} from 'h5log';
import type * as mpi from 'h5log/mpi';
import { memoryStorage } from 'h5log/storage';
import type * as threads from 'h5log/threads';
import type * as tools from 'h5log/tools';

/** Names all entry points, so that all declarations are checked. */
export type Entries = [typeof mpi, typeof threads, typeof tools];

const [, , path = 'consumer.h5'] = process.argv;
const options: CreateOptions = { comm: solo(), durability: 'process' };

const file = await File.create(path, options);
const group: Group = file.createGroup('/run/first');
group.attributes.set('title', 'written by a consumer');
group.attributes.set('step', 3n);
file.createGroup('/run/second').attributes.set('weights', new Float32Array([1, 2, 3]));
file.createSoftLink('/latest', '/run/first');
const commit: Commit = await file.flush();
await file.close();

const dtype = T.compound({ x: 'float64', name: T.string() }) satisfies DType;
const value: ValueOf<typeof dtype> = { x: 1, name: 'a' };

const again = await File.open(path);
const found = again.group('/run/first').attributes.get('title');
const names = [...again.group('/run').keys()];
await again.close();

const inMemory = File.createSync(memoryStorage());
inMemory.createGroup('a');
inMemory.closeSync();

let code: string | undefined;
try {
  await File.open(`${path}.missing`);
} catch (error) {
  if (isH5LogError(error, 'NOT_FOUND') || error instanceof H5LogError) code = error.code;
}

if (found !== 'written by a consumer' || names.join() !== 'first,second' || commit.sequence < 0 || code === undefined) {
  throw new Error(`wrong: ${String(found)}, ${names.join()}, ${commit.sequence}, ${code}, ${value.name}`);
}
