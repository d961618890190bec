import { H5LogError } from '../base/errors.ts';

/** Options from environment variables; undefined where a variable is not set. Read at each use, not at import. */
export interface EnvironmentOptions {
  readonly connector?: 'log' | 'native' | undefined;
  readonly merge?: boolean | undefined;
  readonly encode?: boolean | undefined;
  readonly share?: boolean | undefined;
  readonly compress?: boolean | undefined;
  /** Memory limit of indexes, in bytes. */
  readonly indexLimit?: number | undefined;
  readonly subfiles?: number | 'node' | undefined;
}

/** Reads the environment variables of the original log VOL. */
export function readEnvironment(environment: (name: string) => string | undefined): EnvironmentOptions {
  /** True for "1", false for any other value, as in the original. */
  const flag = (name: string): boolean | undefined => {
    const value = environment(name);
    return value === undefined ? undefined : value === '1';
  };
  return {
    /** Ignores connectors other than log and native. */
    get connector() {
      const value = environment('HDF5_VOL_CONNECTOR')?.trim().split(/\s+/)[0]?.toLowerCase();
      return value === 'log' || value === 'native' ? value : undefined;
    },
    get merge() {
      return flag('H5VL_LOG_METADATA_MERGE');
    },
    get encode() {
      const value = environment('H5VL_LOG_SEL_ENCODING');
      return value === undefined ? undefined : value !== 'canonical';
    },
    get share() {
      return flag('H5VL_LOG_METADATA_SHARE');
    },
    get compress() {
      return flag('H5VL_LOG_METADATA_ZIP');
    },
    get indexLimit() {
      const value = environment('H5VL_LOG_IDX_BSIZE');
      if (value === undefined || value === '') return undefined;
      const bytes = Number(value);
      if (!Number.isInteger(bytes))
        throw new H5LogError('OPTION', `H5VL_LOG_IDX_BSIZE must be a number of bytes, got ${JSON.stringify(value)}`);
      return bytes < 0 ? undefined : bytes;
    },
    get subfiles() {
      const value = environment('H5VL_LOG_NSUBFILES')?.trim();
      if (value === undefined) return undefined;
      if (value === '') return 'node';
      const count = Number(value);
      if (!Number.isInteger(count))
        throw new H5LogError('OPTION', `H5VL_LOG_NSUBFILES must be a whole number, got ${JSON.stringify(value)}`);
      return count < 0 ? 'node' : count;
    },
  };
}
