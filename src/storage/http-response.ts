import { joined } from '../base/buffers.ts';

/** What tells one version of a remote file from the next. */
export interface Version {
  readonly size: number | undefined;
  readonly etag: string | null;
  readonly modified: string | null;
}

export function versionOf(response: Response, size: number | undefined): Version {
  return { size, etag: response.headers.get('etag'), modified: response.headers.get('last-modified') };
}

/** Compares what both have: behind a load balancer or CORS a header can be missing from some answers. */
export function sameVersion(a: Version, b: Version): boolean {
  const same = <T>(x: T, y: T): boolean => x == null || y == null || x === y;
  return same(a.size, b.size) && same(a.etag, b.etag) && same(a.modified, b.modified);
}

/** The bytes from `start` up to and without `end` of `size` (unknown if `*`); an unsatisfied range (`*`) is 0 to 0. */
export function rangeOf(response: Response): { start: number; end: number; size: number | undefined } | undefined {
  const match = /^bytes (?:(\d+)-(\d+)|\*)\/(?:(\d+)|\*)$/.exec(response.headers.get('content-range')?.trim() ?? '');
  if (!match) return undefined;
  const [, first, last, size] = match;
  return {
    start: Number(first ?? 0),
    end: last === undefined ? 0 : Number(last) + 1,
    size: size === undefined ? undefined : Number(size),
  };
}

/** Streams the body into place, without a second copy of it in memory. Gives the length of the body, cut off at one too many. */
export async function fillFrom(response: Response, into: Uint8Array): Promise<number> {
  let filled = 0;
  for await (const chunk of chunksOf(response)) {
    if (filled + chunk.byteLength > into.byteLength) return into.byteLength + 1;
    into.set(chunk, filled);
    filled += chunk.byteLength;
  }
  return filled;
}

/** The whole body, or undefined if it is longer than `most`. */
export async function readAll(response: Response, most: number): Promise<Uint8Array | undefined> {
  if (Number(response.headers.get('content-length') ?? 0) > most) return undefined;
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunksOf(response)) {
    length += chunk.byteLength;
    if (length > most) return undefined;
    chunks.push(chunk);
  }
  return joined(chunks);
}

/** By reader: Safari cannot iterate over a stream. Leaving early cancels the rest of the body. */
async function* chunksOf(response: Response): AsyncGenerator<Uint8Array> {
  const reader = response.body?.getReader();
  if (!reader) return;
  let ended = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      ended = done;
      if (done) return;
      yield value as Uint8Array;
    }
  } finally {
    if (!ended) await reader.cancel().catch(() => undefined);
    reader.releaseLock();
  }
}
