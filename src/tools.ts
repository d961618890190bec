export { type CompactOptions, type CompactProgress, type CompactResult, compact } from './tools/compact/compact.ts';
export { type DemoOptions, type DemoReport, demo, type WrongElement } from './tools/demo/demo.ts';
export type { Tolerance } from './tools/diff/compare.ts';
export {
  type ComparedKind,
  type Diff,
  type DiffEvent,
  type DiffOptions,
  diff,
  differencesOf,
  type ObjectDifference,
  type ValueDifference,
} from './tools/diff/diff.ts';
export { type Blocks, type BlocksOptions, blocks } from './tools/dump/blocks.ts';
export { type DatasetDumpOptions, datasetJson, datasetLines } from './tools/dump/contents.ts';
export {
  type Dump,
  type DumpedConfiguration,
  type DumpedEntry,
  type DumpedSection,
  type DumpedSeries,
  type DumpedStore,
  type DumpedTable,
  type DumpOptions,
  dump,
} from './tools/dump/dump.ts';
export { type BlockPlot, type PlotOptions, plotBlocks } from './tools/dump/plot.ts';
export { type FileKind, fileKind } from './tools/inside.ts';
export { netcdfHeader } from './tools/list/cdl.ts';
export {
  type ListedAttribute,
  type ListedObject,
  type Listing,
  type ListOptions,
  type LoggedData,
  list,
} from './tools/list/list.ts';
export type { LogsShown } from './tools/log-tables.ts';
export { publish } from './tools/publish/publish.ts';
export type { ReplayOptions, ReplayProgress, ReplayResult } from './tools/replay/options.ts';
export { replay } from './tools/replay/replay.ts';
export {
  type SealedDataset,
  type SealOptions,
  type SealProgress,
  type SealResult,
  type SealWay,
  seal,
} from './tools/seal/seal.ts';
export {
  type DatasetStat,
  type FlushStat,
  type OrdinaryStat,
  type PublishedStat,
  type Stat,
  type StatOptions,
  stat,
  type WrittenPart,
} from './tools/stat/stat.ts';
export type { Plain } from './tools/value-text.ts';
export type { Problem } from './tools/verify/checked-data.ts';
export type { Repaired } from './tools/verify/repair.ts';
export {
  type VerifiedCommit,
  type VerifyOptions,
  type VerifyProgress,
  type VerifyResult,
  verify,
} from './tools/verify/verify.ts';
