import type { Resolver } from '../../dtype/decode.ts';
import { containsReference } from '../../dtype/describe.ts';
import { heapSlots, visitReferences } from '../../dtype/heap-ids.ts';
import { type DType, type FullType, fullType } from '../../dtype/model.ts';
import type { NativeFile } from './native-file.ts';
import { OWN_HEAP } from './packed.ts';

const REGION: FullType = { class: 'reference', size: 12, to: 'region' };

/** What decoding needs besides the bytes: variable-length contents, and the paths that references lead to. */
export function resolverFor(
  file: NativeFile,
  dtype: DType,
  bytes: Uint8Array,
  count: number,
  contents: readonly Uint8Array[],
): Resolver {
  const paths = containsReference(dtype) ? referencePaths(file, dtype, bytes, count, contents) : new Map();
  return {
    heap: (address, index) => (address === OWN_HEAP ? contents[index] : file.structure.heap.contents()(address, index)),
    path: (address) => paths.get(address) ?? '',
  };
}

/** Paths by address, of everything that the references in some elements point to: one way through the file for all. */
function referencePaths(
  file: NativeFile,
  dtype: DType,
  bytes: Uint8Array,
  count: number,
  contents: readonly Uint8Array[],
): Map<number, string> {
  const addresses = new Set<number>();
  const regions: Uint8Array[] = [];
  const collect = (inner: DType, bytes: Uint8Array, count: number): void => {
    visitReferences(
      inner,
      bytes,
      count,
      (_at, address) => addresses.add(address),
      (at) => regions.push(bytes.subarray(at, at + REGION.size)),
    );
    for (const { length, address, index, base } of heapSlots(inner, bytes, count)) {
      const content = address === OWN_HEAP ? contents[index] : undefined;
      if (content && containsReference(base)) collect(base, content, length);
    }
  };
  collect(dtype, bytes, count);
  const { structure } = file;
  for (const region of regions) {
    file.now(structure.heap.load(REGION, region, 1));
    for (const address of objectsOf(region, file)) addresses.add(address);
  }
  return file.now(structure.pathsOf(addresses));
}

/** A region reference leads to a heap object that begins with the address of the dataset. */
function objectsOf(region: Uint8Array, file: NativeFile): number[] {
  const found: number[] = [];
  visitReferences(
    REGION,
    region,
    1,
    () => {},
    (_at, address, index) => {
      const content = file.structure.heap.get(address, index);
      if (content) {
        const object: FullType = fullType({ class: 'reference', size: 8, to: 'object' } as FullType);
        visitReferences(object, content.subarray(0, 8), 1, (_at, target) => found.push(target));
      }
    },
  );
  return found;
}
