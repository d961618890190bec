export type { Problem } from './checked-objects.ts';
export { type CompactOptions, type CompactProgress, type CompactResult, compact } from './compact.ts';
export { type DemoOptions, type DemoReport, demo } from './demo.ts';
export {
  type Diff,
  type DiffEvent,
  type DiffOptions,
  diff,
  differencesOf,
  type ObjectDifference,
  type ValueDifference,
} from './diff.ts';
export { type Dump, type DumpedEntry, type DumpedTable, type DumpOptions, dump } from './dump.ts';
export { type DatasetDumpOptions, datasetJson, datasetLines } from './dump-dataset.ts';
export { type FileKind, fileKind } from './file-kind.ts';
export { type ListedObject, type Listing, type ListOptions, list } from './list.ts';
export { type BlockPlot, type PlotOptions, plotBlocks } from './plot.ts';
export { type ReplayOptions, type ReplayProgress, type ReplayResult, replay } from './replay.ts';
export { type SealOptions, type SealProgress, type SealResult, seal } from './seal.ts';
export { type DatasetStat, type FlushStat, type Stat, type StatOptions, stat } from './stat.ts';
export { type VerifiedCommit, type VerifyOptions, type VerifyProgress, type VerifyResult, verify } from './verify.ts';
export type { Repaired } from './verify-repair.ts';
