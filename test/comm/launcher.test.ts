import { describe, expect, test } from 'vitest';
import { findLauncher } from '../../src/comm/launcher.ts';

describe('the launcher', () => {
  test('is none in a plain environment', () => {
    expect(started({})).toBeUndefined();
  });

  test('is read from the variables of Open MPI', () => {
    const environment = { OMPI_COMM_WORLD_SIZE: '4', OMPI_COMM_WORLD_RANK: '2', PMIX_RANK: '2' };
    expect(started(environment)).toEqual({ kind: 'openmpi', rank: 2, size: 4 });
  });

  test('is read from PMI, which MPICH and srun --mpi=pmi2 set', () => {
    const environment = { PMI_SIZE: '8', PMI_RANK: '7', SLURM_NTASKS: '8', SLURM_PROCID: '7' };
    expect(started(environment)).toEqual({ kind: 'pmi', rank: 7, size: 8 });
  });

  test('is read from PMIx, whose size is that of the Slurm step', () => {
    const environment = { PMIX_RANK: '1', SLURM_NTASKS: '2', SLURM_PROCID: '1' };
    expect(started(environment)).toEqual({ kind: 'pmix', rank: 1, size: 2 });
  });

  test('is srun when there are tasks and no MPI', () => {
    expect(started({ SLURM_NTASKS: '3', SLURM_PROCID: '0' })).toEqual({ kind: 'srun', rank: 0, size: 3 });
    expect(started({ SLURM_NTASKS: '1', SLURM_PROCID: '0' })).toBeUndefined();
    expect(started({ SLURM_NTASKS: '3' })).toBeUndefined();
  });

  test('of one rank is reported', () => {
    expect(started({ OMPI_COMM_WORLD_SIZE: '1', OMPI_COMM_WORLD_RANK: '0' })).toEqual({
      kind: 'openmpi',
      rank: 0,
      size: 1,
    });
  });

  test('is not made of values that are no numbers or do not fit together', () => {
    expect(started({ PMI_SIZE: '', PMI_RANK: '' })).toBeUndefined();
    expect(started({ PMI_SIZE: 'two', PMI_RANK: '0' })).toBeUndefined();
    expect(started({ PMI_SIZE: '2', PMI_RANK: '2' })).toBeUndefined();
    expect(started({ OMPI_COMM_WORLD_SIZE: '2' })).toBeUndefined();
    expect(started({ PMIX_RANK: '0' })).toBeUndefined();
  });
});

function started(environment: Record<string, string>) {
  return findLauncher((name) => environment[name]);
}
