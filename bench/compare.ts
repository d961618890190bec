import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Figure, Workload } from '../src/bench/workload.ts';
import { OURS, type Peer } from './peers/peer.ts';
import type { Comparison, Result } from './table.ts';
import { titleOf } from './titles.ts';

/**
 * Our own repetitions in a turn. One of small rows is so short that it ends before all of our code is compiled. A stream meets whatever the
 * system is just writing to the disk: the same plain writes take 0.2 s, and then 1.5 s.
 */
const REPEAT: Readonly<Record<string, number>> = { small: 3, stream: 4 };
/** Milliseconds of a turn after which a peer has no other. */
const PATIENCE = 15_000;

export interface CompareOptions {
  /** A directory in which every program gets one of its own, for as long as it runs. */
  readonly folder: string;
  readonly scale: number;
  readonly full: boolean;
  /** How often everybody has a turn, but for those that take long. */
  readonly rounds: number;
  /** Told who is next. */
  readonly onTurn?: (program: string, round: number) => void;
}

export interface Outcome {
  /** Of every time that we measure, also where nobody else does. */
  readonly comparisons: readonly Comparison[];
  /** What we measure besides times, in the last turn. */
  readonly figures: readonly Figure[];
}

/** A workload of ours and of others, turn by turn, so that all of them meet the same machine. The best of its turns counts for each. */
export async function compare(workload: Workload, peers: readonly Peer[], options: CompareOptions): Promise<Outcome> {
  const { scale, full, rounds } = options;
  const { name } = workload;
  const ours = new Map<string, Figure>();
  const tooLong = new Set<Peer>();
  const theirs = new Map<string, Map<string, Result>>();
  for (let round = 0; round < rounds; round++) {
    await turn('h5log', round, options, async (folder) => {
      for await (const figure of workload.run({ folder, scale, repeat: REPEAT[name] ?? 1 })) {
        const before = ours.get(figure.id);
        if (!before || figure.unit !== 's' || figure.value < before.value) ours.set(figure.id, figure);
      }
    });
    for (const peer of peers) {
      const run = peer.workloads[name];
      if (!run || tooLong.has(peer)) continue;
      const begun = performance.now();
      await turn(peer.name, round, options, async (folder) => {
        for (const { id, seconds, part } of await run({ folder, scale, full })) {
          const place = OURS[id] ?? id;
          const known = theirs.get(place) ?? new Map<string, Result>();
          theirs.set(place, known);
          const before = known.get(peer.name);
          if (!before || seconds < before.seconds) known.set(peer.name, { program: peer.name, seconds, part });
        }
      });
      if (performance.now() - begun > PATIENCE) tooLong.add(peer);
    }
  }
  const timed = [...ours.values()].filter(({ unit }) => unit === 's');
  const strange = [...theirs.keys()].filter((id) => !timed.some((figure) => figure.id === id));
  if (strange.length > 0) throw new Error(`${name} has no figure ${strange.join(', ')} to compare with`);
  return {
    comparisons: timed.map(({ id, what, value }) => {
      const first: Result = { program: 'h5log', seconds: value, part: 1 };
      return { id, what: titleOf(id, scale) ?? what.trim(), results: [first, ...(theirs.get(id)?.values() ?? [])] };
    }),
    // A ratio of one turn is not that of the best times.
    figures: [...ours.values()].filter(({ id, unit }) => unit !== 's' && !id.endsWith('/ratio')),
  };
}

async function turn(
  program: string,
  round: number,
  { folder, onTurn }: CompareOptions,
  run: (folder: string) => Promise<void>,
): Promise<void> {
  onTurn?.(program, round);
  const own = mkdtempSync(join(folder, 'turn-'));
  try {
    await run(own);
  } finally {
    rmSync(own, { recursive: true });
  }
}
