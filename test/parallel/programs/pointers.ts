import { isDeepStrictEqual } from 'node:util';
import { mpi } from 'h5log/mpi';
import pointers from '../pointers-rank.ts';

// Every rank checks what it sees of values that all ranks wrote.
const [path = '', options = '{}'] = process.argv.slice(2);
const { seen, expected } = pointers(mpi(), { path, ...JSON.parse(options) }) as { seen: unknown; expected: unknown };
if (!isDeepStrictEqual(seen, expected)) {
  console.error('ranks see other values than they wrote');
  process.exitCode = 1;
}
