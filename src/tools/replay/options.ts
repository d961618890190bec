import type { Communicator } from '../../comm/communicator.ts';

export interface ReplayProgress {
  /** Bytes of raw data dealt with, of how many; the total grows as datasets are looked at. */
  readonly bytes: number;
  readonly total: number;
  /** The dataset under way. */
  readonly dataset: string;
}

export interface ReplayOptions {
  /** Bytes of memory for data and index, 256 MiB without it. What a single chunk with filters needs is taken in any case. */
  memory?: number;
  /** Replace a file that exists. */
  force?: boolean;
  /** Do the work on so many threads; the memory is shared among them. */
  threads?: number;
  /** Several ranks that all make this call divide the work; the memory is that of each. */
  comm?: Communicator;
  progress?: (done: ReplayProgress) => void;
  signal?: AbortSignal;
}

export interface ReplayResult {
  readonly groups: number;
  readonly datasets: number;
  /** Datasets that were not of the log: copied as they were stored. */
  readonly copied: number;
  readonly attributes: number;
  /** Elements of all datasets. */
  readonly elements: number;
  /** Raw data written, and the size of the output. */
  readonly dataBytes: number;
  readonly bytes: number;
  readonly seconds: number;
}
