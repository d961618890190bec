import type { CreateOptions } from '../../src/index.ts';

/** Where logs live, and how tables are written: as many as there are kinds of each, and a number that is prime to others. */
export const LAYOUTS: readonly Pick<CreateOptions, 'logs' | 'table'>[] = [
  {},
  { logs: 'dataset' },
  { logs: 'group', table: { format: 'classic' } },
  { table: { format: 'classic', bigEndian: true } },
  { logs: 'dataset', table: { format: 'classic' } },
];
