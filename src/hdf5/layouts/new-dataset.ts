import { UNDEFINED } from '../format/cursor.ts';
import type { HeapSlot, Region, TargetSlot } from '../graph/object-node.ts';
import { type Dataspace, elementCount } from '../messages/dataspace.ts';
import type { AllocationTime } from '../messages/fill-value.ts';
import { encodeContiguous, type Layout } from '../messages/layout.ts';
import * as MESSAGE from '../messages/message-types.ts';

/** A message still without an owner. */
export interface MessageDraft {
  readonly type: number;
  readonly flags: number;
  readonly bytes: Uint8Array;
  readonly targets?: readonly TargetSlot[];
  readonly heap?: readonly HeapSlot[];
}

/** What a layout has to know of its dataset. */
export interface LaidOut {
  readonly space: Dataspace;
  readonly elementSize: number;
  readonly filtered: boolean;
  /** Of the file's chunk trees. */
  readonly fanout: number;
}

/** Where a new dataset's data is. What a log never makes is in ordinary-layouts.ts. */
export interface NewLayout {
  readonly kind: Layout['kind'];
  readonly allocation: AllocationTime;
  /** The message, and regions that are appended with the commit that first writes the dataset. */
  draft(dataset: LaidOut): { readonly draft: MessageDraft; readonly regions: Region[] };
}

export function draftLayout(bytes: Uint8Array, points: Pick<MessageDraft, 'targets' | 'heap'> = {}): MessageDraft {
  return { type: MESSAGE.layout, flags: 0, bytes, ...points };
}

export const unallocated: NewLayout = {
  kind: 'contiguous',
  allocation: 'late',
  draft: (dataset) => ({ draft: draftLayout(encodeContiguous(UNDEFINED, sizeOf(dataset))), regions: [] }),
};

/** Data at an address, or in a region that gets one. */
export function contiguous(data: number | Region): NewLayout {
  return {
    kind: 'contiguous',
    allocation: 'late',
    draft: (dataset) => {
      const size = sizeOf(dataset);
      // libhdf5 1.14 refuses an address for data of no size.
      if (size === 0) return unallocated.draft(dataset);
      if (typeof data === 'number') return { draft: draftLayout(encodeContiguous(data, size)), regions: [] };
      const targets = [{ at: 2, node: data }];
      return { draft: draftLayout(encodeContiguous(data.address, size), { targets }), regions: [data] };
    },
  };
}

function sizeOf({ space, elementSize }: LaidOut): number {
  return elementCount(space) * elementSize;
}
