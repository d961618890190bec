export { nodeStorage } from '#platform';
export { blobStorage, type OpfsAccess, type OpfsHandle, opfsStorage } from './storage/blob.ts';
export { type HttpOptions, httpStorage } from './storage/http.ts';
export { type MemoryStorage, memoryStorage } from './storage/memory.ts';
export type { NodeMode } from './storage/node/file.ts';
export type { BlockingStorage, ByteStorage } from './storage/storage.ts';
