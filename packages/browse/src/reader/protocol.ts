import type { ReaderSession } from './reader-session.ts';

/** The calls that a page can make. */
export type Calls = Pick<
  ReaderSession,
  | 'open'
  | 'close'
  | 'refresh'
  | 'entity'
  | 'attributes'
  | 'value'
  | 'paths'
  | 'exported'
  | 'logFacts'
  | 'blocks'
  | 'verify'
>;

/** From the page to the worker. `Going` is not sent: the worker makes it from messages. */
export type Request =
  | { readonly id: number; readonly call: keyof Calls; readonly args: readonly unknown[] }
  | { readonly id: number; readonly abort: true };

/** From the worker to the page. */
export type Reply =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: string }
  | { readonly id: number; readonly progress: number };
