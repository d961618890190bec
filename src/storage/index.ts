export { nodeStorage } from '#platform';
export { blobStorage } from './blob.ts';
export { type HttpOptions, httpStorage } from './http.ts';
export { type MemoryStorage, memoryStorage } from './memory.ts';
export type { NodeMode } from './node-file.ts';
export type { BlockingStorage, ByteStorage } from './storage.ts';
