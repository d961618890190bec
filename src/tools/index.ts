export { type SealOptions, type SealProgress, type SealResult, seal } from './seal.ts';
