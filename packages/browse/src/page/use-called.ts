import { useEffect, useState } from 'react';
import { messageOf } from './texts.ts';

/** What became of a call so far. */
export interface Called<T> {
  readonly value?: T;
  readonly error?: string;
  /** A newer call is under way; the value is that of an older one. */
  readonly isPending: boolean;
}

/** Calls again whenever `keys` change; what a call before that gave stays until then. */
export function useCalled<T>(call: (signal: AbortSignal) => Promise<T>, keys: readonly unknown[]): Called<T> {
  const [called, setCalled] = useState<Called<T>>({ isPending: true });
  useEffect(() => {
    const controller = new AbortController();
    setCalled(({ value }) => ({ ...(value !== undefined && { value }), isPending: true }));
    call(controller.signal).then(
      (value) => controller.signal.aborted || setCalled({ value, isPending: false }),
      (error) => controller.signal.aborted || setCalled({ error: messageOf(error), isPending: false }),
    );
    return () => controller.abort();
    // biome-ignore lint/correctness/useExhaustiveDependencies: the keys say when; the function is another one every time.
  }, keys);
  return called;
}
