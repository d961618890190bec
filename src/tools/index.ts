export { type ReplayOptions, type ReplayProgress, type ReplayResult, replay } from './replay.ts';
