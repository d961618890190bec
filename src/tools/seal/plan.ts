import { H5LogError } from '../../base/errors.ts';
import { containsReference } from '../../dtype/describe.ts';
import { isNetcdf } from '../../log/format/scales.ts';
import { ChunkSurvey, type SurveyedExtent } from '../../log/publish/chunk-survey.ts';
import { bestGrid, CHOSEN_VISITS, newestBlock, wholeBlock } from '../../log/publish/plan.ts';
import { type Candidate, type PublishPlan, planPublishing } from '../../log/publish/publish.ts';
import { checkChunkBytes, defaultChunks, ordinaryChunks } from '../../space/chunk-shape.ts';
import { mayGrow } from '../../space/shape.ts';
import { type MappedPiece, mappedPieces } from './virtual-layouts.ts';

/** The way that a dataset becomes ordinary. */
type SealPlan = PublishPlan | { readonly kind: 'virtual'; readonly pieces: readonly MappedPiece[] };

/**
 * Chooses the way: of a dataset that was published, as publishing does; else the one that copies least, since no later commit will
 * have to change it. `isLocal`: the data is in the file that is sealed, so that it can be pointed to.
 */
export function planSealing(candidate: Candidate, isLocal: boolean): SealPlan {
  const { dataset, newer } = candidate;
  const { shape, maxShape, filters, elements } = dataset;
  const refers = containsReference(elements.dtype);
  if (dataset.base && !refers) {
    if (isLocal) return planPublishing(candidate);
    throw new H5LogError('UNSUPPORTED', 'another program has copied the file, and elements point into it: replay it');
  }
  const elementSize = elements.size;
  const filtered = filters.length > 0;
  const isFixed = !mayGrow(shape, maxShape);
  const chunk = ordinaryChunks({ shape, maxShape, chunks: dataset.chunks, elementSize }, filtered);
  const newest = newestBlock(newer, shape);
  if (newest < 0 && !dataset.base?.isAllocated) return { kind: 'empty', chunk };
  if (refers) return { kind: 'references' };
  if (isLocal && isFixed) {
    const offset = wholeBlock(newer, newest, shape, elementSize);
    if (offset !== null) return { kind: 'contiguous', offset };
  }
  if (shape.length === 0) return { kind: 'whole' };
  const extent: SurveyedExtent = { shape, elementSize, filtered, isLocal };
  const survey = isLocal ? bestGrid(newer, extent, dataset, chunk) : null;
  if (survey) return { kind: 'chunks', survey, from: 'chunks' };
  // The pieces of virtual datasets are datasets without dimensions, for which h5netcdf refuses a netCDF file.
  const mayMap = isLocal && !elements.points && !isNetcdf(dataset.log.structure.root);
  const pieces = mayMap ? mappedPieces(newer, shape, elementSize) : null;
  if (pieces) return { kind: 'virtual', pieces };
  if (!chunk) return { kind: 'whole' };
  checkChunkBytes(chunk, elementSize);
  const copied =
    ChunkSurvey.of(newer, extent, chunk, CHOSEN_VISITS) ??
    ChunkSurvey.of(newer, extent, defaultChunks({ shape, maxShape, elementSize }), CHOSEN_VISITS);
  if (copied) return { kind: 'chunks', survey: copied, from: 'chunks' };
  if (isFixed && !filtered) return { kind: 'whole' };
  throw new H5LogError('UNSUPPORTED', `[${shape.join(', ')}] has more chunks than can be listed`);
}
