import { H5LogError } from '../../base/errors.ts';
import { Region } from '../graph/object-node.ts';
import { encodeLayout } from '../messages/layout-encode.ts';
import { buildChunkIndex, type ChunkPlace } from './chunks/chunk-index.ts';
import { draftLayout, type NewLayout } from './new-dataset.ts';
import { encodeMappings, type Mapping } from './virtual.ts';

// Layouts of datasets that are in no log: tools and tests make them, a page that only opens files does not load them.

/** Data in the header itself. */
export function compact(data: Uint8Array): NewLayout {
  return {
    kind: 'compact',
    allocation: 'early',
    draft: () => {
      if (data.length > 0xfff0)
        throw new H5LogError('SHAPE', `compact data of ${data.length} bytes; a header holds less than 64 KiB`);
      return { draft: draftLayout(encodeLayout({ kind: 'compact', data })), regions: [] };
    },
  };
}

export function chunked(chunk: readonly number[], chunks: readonly ChunkPlace[]): NewLayout {
  return {
    kind: 'chunked',
    allocation: 'incremental',
    draft: ({ space, elementSize, filtered, fanout }) => {
      if (space.kind !== 'simple') throw new H5LogError('SHAPE', 'only a dataset with dimensions can have chunks');
      const grid = { shape: space.shape, maxShape: space.maxShape, chunk, elementSize, filtered, fanout };
      const { index, region } = buildChunkIndex(grid, chunks);
      const bytes = encodeLayout({ kind: 'chunked', chunk, elementSize, index });
      const targets = region ? [{ at: index.kind === 'btree1' ? 3 : bytes.length - 8, node: region }] : [];
      const regions = chunks.flatMap(({ address }) => (address instanceof Region ? [address] : []));
      if (region && !regions.includes(region)) regions.push(region);
      return { draft: draftLayout(bytes, { targets }), regions };
    },
  };
}

export function virtual(mappings: readonly Mapping[]): NewLayout {
  return {
    kind: 'virtual',
    allocation: 'incremental',
    draft: () => {
      const content = { bytes: encodeMappings(mappings), owned: true, targets: [], heap: [] };
      const bytes = encodeLayout({ kind: 'virtual', heap: 0, index: 0 });
      return { draft: draftLayout(bytes, { heap: [{ at: 2, content }] }), regions: [] };
    },
  };
}
