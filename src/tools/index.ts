export { type DemoOptions, type DemoReport, demo } from './demo.ts';
export { type ReplayOptions, type ReplayProgress, type ReplayResult, replay } from './replay.ts';
