import { runExternal } from '../../src/bench/external.ts';
import type { Peer } from './peer.ts';

/** A command of somebody else's, which says how many seconds it took: compared with the figure that stands for the workload. */
export function external(command: string, workload: string, headline: string): Peer {
  return {
    name: 'external',
    workloads: {
      [workload]: async ({ folder, scale }) => {
        return [{ id: headline, seconds: await runExternal(command, { workload, folder, scale }), part: 1 }];
      },
    },
  };
}
