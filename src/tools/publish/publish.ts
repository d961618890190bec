import { File, type PublishResult } from '../../api/file.ts';
import { checkOptions } from '../../base/options.ts';
import { solo } from '../../comm/solo.ts';

/**
 * Makes every HDF5 program see what a log holds. The log stays, and what it publishes by itself is as it was.
 *
 * ```ts
 * const { datasets, without } = await publish('run.h5');
 * ```
 */
export async function publish(path: string | URL, options: Record<never, never> = {}): Promise<PublishResult> {
  checkOptions('publish', options, {});
  const file = await File.open(path, { mode: 'r+', comm: solo() });
  try {
    return await file.publish();
  } finally {
    await file.close();
  }
}
