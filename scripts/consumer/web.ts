// Compiled for a page: DOM types and no types of Node; bundled, then run without any global of Node.
import { File } from 'h5log';
import { httpStorage } from 'h5log/storage';

/** The paths and attribute names in a file, in the order of their creation. */
export async function listing(blob: Blob): Promise<string[]> {
  const lines: string[] = [];
  const file = await File.open(blob);
  for (const name of file.group('/run').keys()) {
    const { path, attributes } = file.group(`/run/${name}`);
    lines.push(`${path}: ${[...attributes.keys()].join(', ')}`);
  }
  await file.close();
  return lines;
}

/** The code of the error that a file of other bytes gives. */
export async function refusal(blob: Blob): Promise<unknown> {
  try {
    await (await File.open(blob)).close();
    return undefined;
  } catch (error) {
    return (error as { code?: unknown }).code;
  }
}

/** Only compiled and bundled: httpStorage must not bring node's storage along. */
export function remote(url: string): Promise<File> {
  return File.open(httpStorage(url));
}
