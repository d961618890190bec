export { type CompactOptions, type CompactProgress, type CompactResult, compact } from './compact.ts';
export { type VerifiedCommit, type VerifyOptions, type VerifyProgress, type VerifyResult, verify } from './verify.ts';
