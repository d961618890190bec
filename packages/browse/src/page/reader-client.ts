import type { Calls, Reply, Request } from '../reader/protocol.ts';
import type { Going } from '../reader/reader-session.ts';

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
  onProgress: ((part: number) => void) | undefined;
}

/** The arguments of a call, without how it goes on. */
type Arguments<C extends keyof Calls> = Parameters<Calls[C]> extends [...infer A, Going?] ? A : Parameters<Calls[C]>;

/** Calls the worker that reads the file. */
export class ReaderClient {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  #last = 0;

  constructor(worker: Worker) {
    this.#worker = worker;
    worker.addEventListener('message', ({ data }: MessageEvent<Reply>) => this.#receive(data));
    worker.addEventListener('error', ({ message }) => this.#fail(message || 'the worker could not be started'));
  }

  /** Makes a call. One that is aborted fails at once; the worker stops when it next can. */
  call<C extends keyof Calls>(call: C, args: Arguments<C>, going: Going = {}): Promise<Awaited<ReturnType<Calls[C]>>> {
    const id = ++this.#last;
    const { signal, onProgress } = going;
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      this.#waiting.set(id, { resolve: resolve as Waiting['resolve'], reject, onProgress });
      signal?.addEventListener('abort', () => {
        if (!this.#waiting.delete(id)) return;
        this.#send({ id, abort: true });
        reject(signal.reason);
      });
      this.#send({ id, call, args });
    });
  }

  #send(request: Request): void {
    this.#worker.postMessage(request);
  }

  #receive(reply: Reply): void {
    const waiting = this.#waiting.get(reply.id);
    if (!waiting) return;
    if ('progress' in reply) {
      waiting.onProgress?.(reply.progress);
      return;
    }
    this.#waiting.delete(reply.id);
    if ('error' in reply) waiting.reject(new Error(reply.error));
    else waiting.resolve(reply.value);
  }

  #fail(message: string): void {
    for (const { reject } of this.#waiting.values()) reject(new Error(message));
    this.#waiting.clear();
  }
}
