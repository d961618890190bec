/** The largest and the sum of the buffers asked for since the last reset. */
export const allocations = { largest: 0, total: 0 };

export function resetAllocations(): void {
  allocations.largest = allocations.total = 0;
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

/** Counts every buffer that is made from here on, before memory is asked for. */
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
        allocations.largest = Math.max(allocations.largest, length * width);
        allocations.total += length * width;
        return Reflect.construct(target, args);
      },
    });
    Object.defineProperty(globalThis, name, { value: watched, writable: true, configurable: true });
  }
}
