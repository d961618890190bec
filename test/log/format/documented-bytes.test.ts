import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { File } from 'h5log';
import { memoryStorage } from 'h5log/storage';
import { describe, expect, test, vi } from 'vitest';
import { root } from '../../../scripts/root.ts';
import { lookup3, mixedSum } from '../../../src/base/checksum.ts';
import { checksummer } from '../../../src/platform/node.ts';

const page = readFileSync(join(root, 'docs/format.md'), 'utf8');
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

describe('docs/format.md', () => {
  test('shows the bytes of a small file, from the first to the last', () => {
    vi.spyOn(Date, 'now').mockReturnValue(Date.UTC(2026, 0, 1));
    vi.spyOn(crypto, 'getRandomValues').mockImplementation((bytes) => {
      (bytes as Uint8Array).forEach((_, i, all) => {
        all[i] = i;
      });
      return bytes;
    });
    const storage = memoryStorage();
    const file = File.createSync(storage, { publish: 'never' });
    file.createDataset('x', { dtype: 'int8', shape: [3] }).write(Int8Array.of(1, 2, 3));
    file.closeSync();
    vi.restoreAllMocks();
    const bytes = new Uint8Array(storage.blocking.size());
    storage.blocking.read(bytes, 0);

    let end = 0;
    for (const [, offset = '', shown = ''] of page.matchAll(/^\| (0x[0-9a-f]{3}) \| `([0-9a-f* ]+)` \|/gm)) {
      expect(Number(offset)).toBe(end);
      const expected = shown.split(' ').flatMap((part) => {
        const [byte = '', count = '1'] = part.split('*');
        return new Array<string>(Number(count)).fill(byte);
      });
      expect(`${offset}: ${hex(bytes.subarray(end, end + expected.length))}`).toBe(`${offset}: ${expected.join('')}`);
      end += expected.length;
    }
    expect(end).toBe(bytes.length);
  });

  test('has test vectors that hold', () => {
    const vectors = [
      ...page.matchAll(/^\| `([^`]*)` \| `([0-9a-f]{8})` \| `([0-9a-f]{16})` \| `([0-9a-f]{16})` \|$/gm),
    ];
    expect(vectors.length).toBe(3);
    for (const [, text = '', jenkins, gmac, mixed] of vectors) {
      const bytes = new TextEncoder().encode(text);
      const sums = [checksummer(), mixedSum()].map((sum) => {
        sum.update(bytes);
        return hex(sum.digest());
      });
      expect([lookup3(bytes).toString(16).padStart(8, '0'), ...sums]).toEqual([jenkins, gmac, mixed]);
    }
  });
});
