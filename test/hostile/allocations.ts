/** The largest and the sum of the buffers asked for since the last reset. */
export const allocations = { largest: 0, total: 0 };

/** More is refused instead of allocated, so that a fault does not end the tests. */
const REFUSED = 2 ** 30;

export function resetAllocations(): void {
  allocations.largest = allocations.total = 0;
}

function asked(bytes: number): void {
  allocations.largest = Math.max(allocations.largest, bytes);
  allocations.total += bytes;
  if (bytes > REFUSED) throw new Error(`${bytes} bytes were asked for at once`);
}

type BufferConstructor = new (...args: never[]) => ArrayBufferView | ArrayBuffer;

const WATCHED = [
  'ArrayBuffer',
  'Uint8Array',
  'Int8Array',
  'Uint16Array',
  'Int16Array',
  'Uint32Array',
  'Int32Array',
  'Float32Array',
  'Float64Array',
  'BigInt64Array',
  'BigUint64Array',
] as const;

/** Counts every buffer that is made from here on, before memory is asked for: also lists with a length, and those of zlib. */
export function watchAllocations(): void {
  for (const name of WATCHED) {
    const original = globalThis[name] as unknown as BufferConstructor & { BYTES_PER_ELEMENT?: number };
    const width = original.BYTES_PER_ELEMENT ?? 1;
    const watched = new Proxy(original, {
      construct(target, args: unknown[]) {
        const [first] = args;
        const length =
          typeof first === 'number'
            ? first
            : first instanceof ArrayBuffer
              ? 0
              : ((first as ArrayLike<number>)?.length ?? 0);
        asked(length * width);
        return Reflect.construct(target, args);
      },
    });
    Object.defineProperty(globalThis, name, { value: watched, writable: true, configurable: true });
  }
  const { from } = Array;
  Array.from = ((...args: Parameters<typeof from>) => {
    asked(8 * Number((args[0] as ArrayLike<unknown>)?.length ?? 0));
    return from.apply(Array, args);
  }) as typeof from;
  const { allocUnsafe, concat } = Buffer;
  let joining = false;
  Buffer.allocUnsafe = (size) => {
    if (!joining) asked(size);
    return allocUnsafe(size);
  };
  // What zlib joins was in memory before: it is what the file holds, not what it claims.
  Buffer.concat = (...args) => {
    joining = true;
    try {
      return concat(...args);
    } finally {
      joining = false;
    }
  };
}
