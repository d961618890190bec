import type { Communicator } from '../../comm/communicator.ts';

export interface ReplayProgress {
  /** Bytes of raw data done, and in total; the total grows with every dataset that is planned. */
  readonly bytes: number;
  readonly total: number;
  /** The dataset that is being written. */
  readonly dataset: string;
}

export interface ReplayOptions {
  /** Bytes of memory for data and index; default 256 MiB. A single filtered chunk is always held as a whole. */
  memory?: number;
  /** Replace a file that exists. */
  force?: boolean;
  /** Number of threads, which share the memory; default 1. */
  threads?: number;
  /** Ranks that make this call collectively and divide the work; `memory` is that of each. */
  comm?: Communicator;
  /** 'earliest': for readers of HDF5 1.8 and netcdf-java, which do not know what HDF5 1.10 added; default 'latest'. */
  libver?: 'latest' | 'earliest';
  /** Modules that register filters, imported in every thread. */
  filterModules?: readonly (string | URL)[];
  progress?: (done: ReplayProgress) => void;
  signal?: AbortSignal;
}

export interface ReplayResult {
  readonly groups: number;
  readonly datasets: number;
  /** Ordinary datasets, copied as they were stored. */
  readonly copied: number;
  readonly attributes: number;
  /** Elements of all datasets. */
  readonly elements: number;
  /** Raw data written, and the size of the output. */
  readonly dataBytes: number;
  readonly bytes: number;
  readonly seconds: number;
}
