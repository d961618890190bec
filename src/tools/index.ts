export { type VerifiedCommit, type VerifyOptions, type VerifyProgress, type VerifyResult, verify } from './verify.ts';
