import { H5LogError } from '../base/errors.ts';

/** What the environment asks for; undefined where it says nothing. Looked at when it is needed. */
export interface EnvironmentOptions {
  readonly connector?: 'log' | 'native' | undefined;
  readonly merge?: boolean | undefined;
  readonly encode?: boolean | undefined;
  readonly share?: boolean | undefined;
  readonly compress?: boolean | undefined;
  /** Bytes of memory that indexes may take. */
  readonly indexLimit?: number | undefined;
  readonly subfiles?: number | 'node' | undefined;
}

/** By the variables of the original. */
export function readEnvironment(environment: (name: string) => string | undefined): EnvironmentOptions {
  /** On with "1" and off with anything else, as in the original. */
  const flag = (name: string): boolean | undefined => {
    const value = environment(name);
    return value === undefined ? undefined : value === '1';
  };
  return {
    /** Names of connectors that are not ours mean nothing here. */
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
