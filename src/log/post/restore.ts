import { isH5LogError } from '../../base/errors.ts';
import type { Log } from '../log.ts';
import { numberOf, numbersOf } from '../pointers.ts';
import type { LogDataset } from './dataset.ts';
import { clippedTo } from './resize.ts';
import { type DatasetStage, Stage } from './stage.ts';

/**
 * Moves what is pending in a log to the log of the last commit, as whose structure it counts from now on; returns what was dropped, in
 * words: posts to datasets that the commit does not have, or outside of their shapes there.
 */
export function movePosts(from: Log, to: Log): string[] {
  from.undoResizes();
  const datasets = to.structure.now(to.everyDataset());
  const numbers = numbersOf(to.structure);
  to.pointers.takeOver(from.pointers, (node) => {
    const numbered = numbers.get(numberOf(from.structure, node));
    if (numbered || node.kind !== 'dataset') return numbered;
    const anchor = from.structure.now(from.anchor(node));
    return anchor && (datasets.get(anchor.id)?.node ?? null);
  });
  const dropped = new Set<string>();
  for (const stage of [...from.returned, from.current]) {
    const moved = new Stage();
    for (const part of stage.datasets) {
      const dataset = datasets.get(part.dataset.id);
      const kept = dataset && movePart(part, dataset, moved, dropped);
      if (!kept && part.requests > 0 && !dataset) dropped.add(`all to ${part.dataset.path}`);
      part.arena.release();
      if (!kept) continue;
      moved.set(kept);
      moved.requests += kept.requests;
      to.exchange(0, kept.arena.held);
    }
    // A heap that nothing points into any more would be written, in a file that may know of no heaps.
    if ([...moved.datasets].some(({ dataset }) => dataset.elements.points)) {
      moved.heap = stage.heap;
      to.exchange(0, stage.heap?.held ?? 0);
    }
    if (!moved.isEmpty) to.returned.push(moved);
  }
  return [...dropped];
}

function movePart(
  part: DatasetStage,
  dataset: LogDataset,
  stage: Stage,
  dropped: Set<string>,
): DatasetStage | undefined {
  try {
    const kept = clippedTo(part, stage, dataset);
    if (kept.arena.size < part.arena.size) dropped.add(`those to ${dataset.path} outside of its shape`);
    return kept.arena.size > 0 ? kept : undefined;
  } catch (error) {
    // A buffer that was lent and is gone.
    if (!isH5LogError(error)) throw error;
    dropped.add(error.message);
    return undefined;
  }
}
