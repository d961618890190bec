import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { type Abi, knownConstants } from '../../../src/comm/mpi/binding.ts';
import { temporaryDirectory } from '../../temporary.ts';

const source = fileURLToPath(new URL('./constants.c', import.meta.url));

for (const [compiler, abi, handle] of [
  ['mpicc.openmpi', 'ompi', 8],
  ['mpicc.mpich', 'mpich', 4],
  ['mpicc_abi', 'std', 8],
] as [string, Abi, number][]) {
  // A compiler may be there without its header.
  const found = spawnSync(compiler, ['-E', source], { maxBuffer: 2 ** 26 }).status === 0;
  if (!found) process.stdout.write(`skipped: constants of ${abi} (${compiler} or its mpi.h not found)\n`);

  test.skipIf(!found)(`the constants of ${abi} are those of the header`, () => {
    const program = join(temporaryDirectory(), 'constants');
    execFileSync(compiler, ['-o', program, source]);
    const header = JSON.parse(execFileSync(program, { encoding: 'utf8' })) as Record<string, number | string>;
    const { ERRORS_RETURN, ...rest } = header;
    expect(rest).toEqual({
      ...without(knownConstants[abi], 'ERRORS_RETURN'),
      'sizeof MPI_Comm': handle,
      'sizeof MPI_Request': handle,
      'sizeof MPI_File': 8,
      'sizeof MPI_Offset': 8,
      'sizeof MPI_Status at most 64': 1,
    });
    // Asked of the library where it is not in the table.
    expect(ERRORS_RETURN).toBe(knownConstants[abi].ERRORS_RETURN ?? ERRORS_RETURN);
  });
}

function without(table: Readonly<Record<string, number | string>>, name: string): Record<string, number | string> {
  return Object.fromEntries(Object.entries(table).filter(([key]) => key !== name));
}
