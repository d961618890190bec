/** Tools work in at least this much memory, and in this much unless it is said. */
export const LEAST_MEMORY = 2 ** 20;
export const MEMORY = 256 * 2 ** 20;

/** The kind of an option `memory`; see base/options.ts. */
export const MEMORY_OPTION = [
  `a number of at least ${LEAST_MEMORY} bytes`,
  (value: unknown): boolean => typeof value === 'number' && value >= LEAST_MEMORY,
] as const;
