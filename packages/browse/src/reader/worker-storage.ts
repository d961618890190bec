import type { ByteStorage } from 'h5log/storage';

/** Bytes that one request brings, and how many such pieces are kept. */
const PIECE = 2 ** 18;
const KEPT = 256;

/**
 * A file behind a URL that is read with blocking calls, which workers may make: external links and virtual datasets are followed in
 * the middle of calls that cannot wait. null if there is no such file.
 */
export function workerStorage(url: string): ByteStorage | null {
  const head = requested('HEAD', url);
  if (head.status === 404) return null;
  mustBe(head, 200, url);
  const length = Number(head.getResponseHeader('content-length'));
  const pieces = new Map<number, Uint8Array>();
  const piece = (number: number): Uint8Array => {
    const known = pieces.get(number);
    if (known) return known;
    const end = Math.min(length, (number + 1) * PIECE);
    const answer = requested('GET', url, `bytes=${number * PIECE}-${end - 1}`);
    mustBe(answer, 206, url);
    const bytes = new Uint8Array(answer.response as ArrayBuffer);
    if (bytes.length !== end - number * PIECE) throw new Error(`${url}: ${bytes.length} bytes in place of a piece`);
    const [oldest] = pieces.keys();
    if (pieces.size >= KEPT && oldest !== undefined) pieces.delete(oldest);
    pieces.set(number, bytes);
    return bytes;
  };
  const read = (into: Uint8Array, offset: number): number => {
    const count = Math.max(0, Math.min(into.length, length - offset));
    for (let done = 0; done < count; ) {
      const at = offset + done;
      const bytes = piece(Math.floor(at / PIECE)).subarray(at % PIECE, (at % PIECE) + count - done);
      into.set(bytes, done);
      done += bytes.length;
    }
    return count;
  };
  const never = (): never => {
    throw new Error(`${url} is read only`);
  };
  const blocking = { size: () => length, read, write: never, truncate: never, sync: never, close() {} };
  return {
    name: url,
    blocking,
    size: async () => length,
    read: async (into, offset) => read(into, offset),
    async close() {},
  };
}

function requested(method: 'GET' | 'HEAD', url: string, range?: string): XMLHttpRequest {
  const request = new XMLHttpRequest();
  request.open(method, url, false);
  request.responseType = 'arraybuffer';
  if (range !== undefined) request.setRequestHeader('range', range);
  request.send();
  return request;
}

function mustBe({ status }: XMLHttpRequest, expected: number, url: string): void {
  if (status !== expected) throw new Error(`${url}: status ${status}`);
}
