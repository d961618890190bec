/** Who started this process as one of several ranks, and which one it is. */
export interface Launcher {
  readonly kind: 'openmpi' | 'pmi' | 'pmix' | 'srun';
  readonly rank: number;
  readonly size: number;
}

/**
 * The launcher that the environment speaks of; ask before MPI_Init, which sets PMIX_RANK itself. `srun` means tasks without any
 * MPI wiring. A launcher of one rank is reported as well, except for Slurm, whose variables are in every batch job.
 */
export function findLauncher(environment: (name: string) => string | undefined): Launcher | undefined {
  const count = (name: string) => wholeNumber(environment(name));
  const found = (kind: Launcher['kind'], sizeName: string, rankName: string): Launcher | undefined => {
    const size = count(sizeName);
    const rank = count(rankName);
    // Half of a pair, or numbers that do not fit, are left over from something else.
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
