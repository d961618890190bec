export { type CompactOptions, type CompactProgress, type CompactResult, compact } from './tools/compact/compact.ts';
export { type DemoOptions, type DemoReport, demo } from './tools/demo/demo.ts';
export {
  type Diff,
  type DiffEvent,
  type DiffOptions,
  diff,
  differencesOf,
  type ObjectDifference,
  type ValueDifference,
} from './tools/diff/diff.ts';
export { type DatasetDumpOptions, datasetJson, datasetLines } from './tools/dump/dataset.ts';
export { type Dump, type DumpedEntry, type DumpedTable, type DumpOptions, dump } from './tools/dump/dump.ts';
export { type BlockPlot, type PlotOptions, plotBlocks } from './tools/dump/plot.ts';
export { type FileKind, fileKind } from './tools/inside.ts';
export { type ListedObject, type Listing, type ListOptions, list } from './tools/list/list.ts';
export type { ReplayOptions, ReplayProgress, ReplayResult } from './tools/replay/options.ts';
export { replay } from './tools/replay/replay.ts';
export { type SealOptions, type SealProgress, type SealResult, seal } from './tools/seal/seal.ts';
export { type DatasetStat, type FlushStat, type Stat, type StatOptions, stat } from './tools/stat/stat.ts';
export type { Problem } from './tools/verify/checked-objects.ts';
export type { Repaired } from './tools/verify/repair.ts';
export {
  type VerifiedCommit,
  type VerifyOptions,
  type VerifyProgress,
  type VerifyResult,
  verify,
} from './tools/verify/verify.ts';
