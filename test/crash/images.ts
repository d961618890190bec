import { File } from '../../src/index.ts';
import { memoryStorage } from '../../src/storage/memory.ts';
import { commitOf } from './states.ts';

/** The commit whose state an image of a file is in; throws unless all of it is there. */
export function commitIn(image: Uint8Array): number {
  return commitOf(File.openSync(memoryStorage(image)));
}
