import { formatError } from '../../base/errors.ts';
import { heapSlots, visitReferences } from '../../dtype/heap-ids.ts';
import type { DType } from '../../dtype/model.ts';
import { Cursor } from '../../hdf5/format/cursor.ts';
import type { HeapLookup } from '../../hdf5/format/global-heap.ts';
import type { AddressSlot, HeapSlot, ObjectNode, Relocatable } from '../../hdf5/graph/object-node.ts';

const NOTHING = new Uint8Array(0);

/**
 * Elements of one file for another: variable-length values are taken along, references lead to the twins of what they led
 * to. `twin` gives the object of the other file for an address; a reference to what has none becomes a null reference.
 */
export function translated(
  dtype: DType,
  data: Uint8Array,
  count: number,
  contentOf: HeapLookup,
  twin: (address: number) => ObjectNode | undefined,
): Relocatable {
  const bytes = data.slice();
  const targets: AddressSlot[] = [];
  const heap: HeapSlot[] = [];
  visitReferences(
    dtype,
    data,
    count,
    (at, address) => {
      const node = twin(address);
      if (node) targets.push({ at, node });
      else bytes.fill(0, at, at + 8);
    },
    (at, address, index) => {
      // A region: the heap holds the object's address and a selection.
      const content = mustHave(contentOf, address, index);
      const node = content.length >= 8 ? twin(new Cursor(content, 0).address(8)) : undefined;
      if (!node) bytes.fill(0, at, at + 12);
      else heap.push({ at, content: { bytes: content.slice(), owned: true, targets: [{ at: 0, node }], heap: [] } });
    },
  );
  for (const { at, length, address, index, base } of heapSlots(dtype, data, count)) {
    if (address === 0) {
      bytes.fill(0, at, at + 16);
      continue;
    }
    // An empty text is not the same as none: libhdf5 keeps it in the heap as well.
    const content = length === 0 ? NOTHING : mustHave(contentOf, address, index);
    heap.push({ at: at + 4, content: translated(base, content, length, contentOf, twin) });
  }
  return { bytes, owned: true, targets, heap };
}

function mustHave(contentOf: HeapLookup, address: number, index: number): Uint8Array {
  const content = contentOf(address, index);
  if (!content) throw formatError(`object ${index} of the heap at ${address} is missing`);
  return content;
}
