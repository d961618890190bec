import { H5LogError } from '../../errors.ts';

// What `#several` is in a browser, where no launcher starts ranks and no path leads to subfiles.

export function mustMeanOneRank(): void {}

export const late: typeof import('./late.ts') | null = null;

export function severalRanks(..._given: readonly unknown[]): never {
  throw new H5LogError('UNSUPPORTED', 'several ranks need Node.js; in a browser each opens the file itself');
}

function withoutPath(..._given: readonly unknown[]): never {
  throw new H5LogError('UNSUPPORTED', 'subfiles need Node.js, and a file that is opened by its path');
}

export { withoutPath as createSubfiles, withoutPath as openSubfiled };
