import { H5LogError, isH5LogError } from '../base/errors.ts';
import type { FileSession } from '../connector/file-session.ts';
import { NotLoaded } from '../hdf5/format/file-bytes.ts';
import type { ObjectNode } from '../hdf5/graph/object-node.ts';

/**
 * The key of what is behind a group or a dataset. No entry point exports it: tools reach the internals with `handleOf`, users do
 * not.
 */
export const handle: unique symbol = Symbol('handle');

/** What is behind a group or a dataset: the open file and the object in it. */
export class ObjectHandle {
  readonly session: FileSession;
  readonly path: string;
  #node: ObjectNode;
  #generation: number;

  constructor(session: FileSession, path: string, node: ObjectNode) {
    if (typeof (session as Partial<FileSession> | undefined)?.generation !== 'number')
      throw new H5LogError('OPTION', 'groups and datasets come from a file: File.open, or File.create');
    this.session = session;
    this.path = path;
    this.#node = node;
    this.#generation = session.generation;
  }

  /** Looked up again by its path when the file has moved to another commit. */
  get node(): ObjectNode {
    const { session, path } = this;
    if (this.#generation !== session.generation) {
      const { kind } = this.#node;
      const found = looked(
        session,
        () => path,
        () => session.find(session.structure.root, path),
      );
      const node = found?.session === session ? found.node : undefined;
      if (node?.kind !== kind) {
        const details = { file: session.storage.name, object: path };
        throw new H5LogError('NOT_FOUND', `${path} is no longer a ${kind}`, details);
      }
      this.#node = node;
      this.#generation = session.generation;
    }
    return this.#node;
  }
}

/** Looks at structure. Where it is loaded on demand, what was not loaded throws UNSUPPORTED and says how to load it. */
export function looked<T>(session: FileSession, path: () => string, look: () => T): T {
  if (!session.lazy) return look();
  const { file } = session.structure.loader;
  file.sealed = true;
  try {
    return look();
  } catch (error) {
    if (!(error instanceof NotLoaded)) throw error;
    const object = path();
    const message = `${object} is not loaded: await file.load(${JSON.stringify(object).replace(/^"(.*)"$/, "'$1'")}) first`;
    throw new H5LogError('UNSUPPORTED', message, { file: session.storage.name, object });
  } finally {
    file.sealed = false;
  }
}

/** A group or a dataset. */
export interface Handled {
  readonly [handle]: ObjectHandle;
}

export function handleOf(object: Handled): ObjectHandle {
  return object[handle];
}

export function sessionOf(object: Handled): FileSession {
  return object[handle].session;
}

/** The name of an object's file, without its folders. */
export function fileOf({ session }: ObjectHandle): string {
  return session.storage.name.replace(/^.*[\\/](?=.)/, '');
}

/** A line for printing; of an object that cannot be looked at, its name and why. */
export function lineOf(name: string, rest: () => string): string {
  try {
    return name + rest();
  } catch (error) {
    return `${name} (${isH5LogError(error) ? error.code : String(error)})`;
  }
}
