/** The program that started this process as one of several ranks, and its rank. */
export interface Launcher {
  readonly kind: 'openmpi' | 'pmi' | 'pmix' | 'srun';
  readonly rank: number;
  readonly size: number;
}

/**
 * Finds the launcher by the environment variables it sets. Must be called before MPI_Init, which sets PMIX_RANK itself. `srun`
 * means tasks without MPI support. A launcher of one rank is reported too, except for Slurm, whose variables are in every batch job.
 */
export function findLauncher(environment: (name: string) => string | undefined): Launcher | undefined {
  const count = (name: string) => wholeNumber(environment(name));
  const found = (kind: Launcher['kind'], sizeName: string, rankName: string): Launcher | undefined => {
    const size = count(sizeName);
    const rank = count(rankName);
    // A lone variable, or a rank beyond the size, does not come from a launcher of this process.
    return size === undefined || rank === undefined || rank >= size ? undefined : { kind, rank, size };
  };
  const slurm = found('srun', 'SLURM_NTASKS', 'SLURM_PROCID');
  return (
    found('openmpi', 'OMPI_COMM_WORLD_SIZE', 'OMPI_COMM_WORLD_RANK') ??
    found('pmi', 'PMI_SIZE', 'PMI_RANK') ??
    found('pmix', 'SLURM_NTASKS', 'PMIX_RANK') ??
    (slurm && slurm.size > 1 ? slurm : undefined)
  );
}

function wholeNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}
