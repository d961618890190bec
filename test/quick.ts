/**
 * What `npm run test:quick` leaves out, as patterns in test/: whatever starts processes, threads or tools of others, and whatever
 * takes longer than two seconds at a fiftieth of the repetitions. A new test takes part unless it is named here.
 */
export const LEFT_OUT: readonly string[] = [
  'bench/**',
  'browser/**',
  'cli/**',
  'compatibility/**',
  'crash/**',
  'examples/**',
  'interop/**',
  'parallel/**',
  'api/lifetime',
  'comm/mpi/**',
  'comm/threads/{conformance,failures,run,work}',
  'hdf5/layouts/chunks/chunk-tree',
  'hostile/{fields,flip,fuzz,logs,sealed,truncation,work}',
  'log/flush/tiers',
  'log/format/oracle',
  'log/large',
  'log/post/buffer-limit',
  'log/read/later-wins',
  'original/{append,attack,ended-early}',
  'project/{bundle,cli-docs,contract,soak}',
  'space/sets',
  'storage/node/lock',
  'tools/{compact,diff,dump,list,stat,verify}/**',
  'tools/replay/{memory,ordinary,original,random,ranks,replay}',
  'tools/seal/{crash,large,seal,structure}',
];

/** True in `npm run test:quick`. */
export const quick = process.env.H5LOG_QUICK === '1';
