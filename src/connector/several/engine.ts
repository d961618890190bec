/** Several ranks, and several files: what `#several` is on Node. A page has one rank, and nothing beside a file. */
export * as late from './late.ts';
export { mustMeanOneRank, severalRanks } from './ranks.ts';
export { createSubfiles, openSubfiled } from './subfiled-log.ts';
