import type { ByteStorage } from './storage.ts';

/** The files beside a file that hold its data. They are made under temporary names and get their own when the file is there. */
export interface Subfiles {
  /** Where subfile number `g` is, for messages. */
  name(g: number): string;
  /** undefined: there is none. With a token: the one of that file which was not given its name yet. */
  open(g: number, writing: boolean, token?: string): ByteStorage | undefined;
  create(g: number, token: string): ByteStorage;
  publish(g: number, token: string, durable: boolean): void;
  discard(g: number, token: string): void;
  /** Removes what earlier files of that name left behind: subfiles from number `count` on, and those that never got a name. */
  tidy(count: number): void;
}
