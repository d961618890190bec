import { messageOf } from './reader/browsed-file.ts';
import type { Reply, Request } from './reader/protocol.ts';
import { ReaderSession } from './reader/reader-session.ts';

/*
 * The worker of the page: a shell around ReaderSession, which tests run without a worker.
 */

const session = new ReaderSession();
const running = new Map<number, AbortController>();

addEventListener('message', async ({ data }: MessageEvent<Request>) => {
  if ('abort' in data) {
    running.get(data.id)?.abort();
    return;
  }
  const { id, call, args } = data;
  const controller = new AbortController();
  running.set(id, controller);
  const going = { signal: controller.signal, onProgress: (progress: number) => reply({ id, progress }) };
  try {
    // Every call takes how it goes on after its own arguments; the page sends all of these, also those that are undefined.
    const work = session[call] as (...args: unknown[]) => Promise<unknown>;
    reply({ id, value: await work.call(session, ...args, going) });
  } catch (error) {
    reply({ id, error: messageOf(error) });
  } finally {
    running.delete(id);
  }
});

function reply(message: Reply): void {
  const value = 'value' in message ? message.value : undefined;
  const buffer = ArrayBuffer.isView(value) ? value.buffer : undefined;
  postMessage(message, { transfer: buffer instanceof ArrayBuffer ? [buffer] : [] });
}
