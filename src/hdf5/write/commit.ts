import type { Io } from '../../storage/io.ts';
import { UNDEFINED } from '../format/cursor.ts';
import type { ObjectNode } from '../graph/object-node.ts';
import type { Append, Appender } from './appender.ts';
import { planStructure, type StructurePlan, undoPlan } from './plan.ts';
import type { Structure } from './structure.ts';

/** A commit that is encoded and has its place, but is not written yet. */
export interface PlannedCommit {
  readonly plan: StructurePlan;
  readonly append: Append;
  /** Bytes added to the file. */
  readonly bytes: number;
}

/**
 * Turns what changed in a structure into commits. Planning happens at once and fixes the bytes; writing may take its time while
 * the structure changes further. Commits are written in the order they were planned; when one fails, those behind it must be
 * undone too, because they point into it.
 */
export class Committer {
  readonly structure: Structure;
  readonly appender: Appender;
  #extension: ObjectNode | null;
  #extensionPlanned = false;

  constructor(structure: Structure, appender: Appender, extension: ObjectNode | null) {
    this.structure = structure;
    this.appender = appender;
    this.#extension = extension;
  }

  /** Whether a commit would change the file. */
  get pending(): boolean {
    return this.structure.dirty.size > 0 || this.structure.regions.size > 0;
  }

  plan(): PlannedCommit {
    const { structure, appender } = this;
    const changed = new Set(structure.dirty);
    if (this.#extension && !this.#extensionPlanned) changed.add(this.#extension);
    const plan = planStructure(changed, [...structure.regions], appender.position, structure.tick++);
    this.#extensionPlanned = true;
    appender.position = plan.end;
    structure.dirty.clear();
    structure.regions.clear();
    const extension = this.#extension ? this.#extension.address : UNDEFINED;
    const append = { at: plan.at, parts: plan.parts, end: plan.end, root: structure.root.address, extension };
    return { plan, append, bytes: plan.end - plan.at };
  }

  /** Writes a planned commit, its bytes by `body` if given. May be started again: the bytes and their places are fixed. */
  *write(planned: PlannedCommit, body?: (append: Append) => Io<void>): Io<void> {
    yield* this.appender.commit(planned.append, body);
    this.structure.loader.file.end = planned.append.end;
  }

  /** The planned commit is not, and will not be, in the file: everything in it is pending again. */
  undo(planned: PlannedCommit): void {
    undoPlan(planned.plan);
    for (const node of planned.plan.nodes) {
      if (node === this.#extension) this.#extensionPlanned = false;
      else if (node.linkCount > 0) this.structure.dirty.add(node);
    }
    for (const region of planned.plan.regions) if (region.incoming.size > 0) this.structure.regions.add(region);
  }
}
