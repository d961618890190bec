import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { stat } from 'h5log/tools';
import { expect, test } from 'vitest';
import { reseal, sealedParts } from '../../hostile/checksums.ts';
import { temporaryDirectory } from '../../temporary.ts';

/** Where the dataspace of the dataset says that it has largest sizes: without them none is unlimited. */
const FLAGS_AT = 225;

test('an index of chunks that does not fit the shape: the error names the dataset and the byte', async () => {
  const fixture = new URL('../../fixtures/hostile/ordinary.json.gz', import.meta.url);
  const files = JSON.parse(gunzipSync(readFileSync(fixture)).toString()) as Record<string, string>;
  const bytes = new Uint8Array(Buffer.from(files['extensible-shuffle-deflate-fletcher.h5'] ?? '', 'base64'));
  const sealed = sealedParts(bytes);
  expect(bytes[FLAGS_AT]).toBe(1);
  bytes[FLAGS_AT] = 0;
  reseal(bytes, sealed);
  const path = join(temporaryDirectory(), 'damaged.h5');
  writeFileSync(path, bytes);
  await expect(stat(path)).rejects.toMatchObject({
    code: 'FORMAT',
    object: '/d',
    offset: expect.any(Number),
    message: expect.stringContaining('although no dimension is unlimited'),
  });
});
