import type { Communicator } from '../../comm/communicator.ts';
import { H5LogError } from '../../errors.ts';

// What `#several` is in a browser, where no launcher starts ranks and no path leads to subfiles.

export function mustMeanOneRank(): void {}

export function plainCopy(): null {
  return null;
}

export function severalRanks({ size }: Communicator, _options: object): never {
  throw new H5LogError(
    'UNSUPPORTED',
    `a communicator of ${size} ranks needs Node.js; in a browser each rank opens the file for itself, without comm`,
  );
}

export function createSubfiles(..._given: readonly unknown[]): never {
  throw withoutPath();
}

export function openSubfiled(..._given: readonly unknown[]): never {
  throw withoutPath();
}

function withoutPath(): H5LogError {
  return new H5LogError(
    'UNSUPPORTED',
    'subfiles need Node.js: they are found beside a file that is opened by its path',
  );
}
