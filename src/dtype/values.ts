// Values of every class to and from file bytes: one place to import from.

export { decodeOne, decodeValues, type Resolver } from './decode.ts';
export { type Encoded, encodeValues, type HeapItem } from './encode.ts';
export type { HeapId } from './heap-id.ts';
export { type HeapSlot, heapSlots, visitHeapIds, visitReferences } from './visit.ts';
