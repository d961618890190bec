export type { Problem } from './checked-objects.ts';
export { type CompactOptions, type CompactProgress, type CompactResult, compact } from './compact.ts';
export { type DemoOptions, type DemoReport, demo } from './demo.ts';
export { type ReplayOptions, type ReplayProgress, type ReplayResult, replay } from './replay.ts';
export { type SealOptions, type SealProgress, type SealResult, seal } from './seal.ts';
export { type VerifiedCommit, type VerifyOptions, type VerifyProgress, type VerifyResult, verify } from './verify.ts';
export type { Repaired } from './verify-repair.ts';
