import { rawReferences } from '../../hdf5/layouts/raw-references.ts';
import { openStructure, prepareWriting } from '../../hdf5/open.ts';
import { Appender } from '../../hdf5/write/appender.ts';
import { Committer } from '../../hdf5/write/commit.ts';
import type { Structure } from '../../hdf5/write/structure.ts';
import type { Io } from '../../storage/io.ts';
import type { ByteStorage } from '../../storage/storage.ts';

/** Small writes are put together up to this size. */
const BATCH = 4 * 2 ** 20;

/** The file that is sealed: what is moved goes to its end, and one commit makes it another file. */
export class SealOutput {
  readonly storage: ByteStorage;
  readonly structure: Structure;
  readonly #committer: Committer;
  #waiting: Uint8Array[] = [];
  #waitingAt = 0;
  #bytes = 0;

  private constructor(storage: ByteStorage, structure: Structure, committer: Committer) {
    this.storage = storage;
    this.structure = structure;
    this.#committer = committer;
  }

  /** Opens a file for its last commit, which survives a power loss whole or not at all. */
  static *open(storage: ByteStorage): Io<SealOutput> {
    const opened = yield* openStructure();
    yield* prepareWriting(opened, rawReferences);
    const { structure, superblock, extension } = opened;
    const appender = new Appender({ name: storage.name, superblock, power: true });
    yield* appender.begin();
    return new SealOutput(storage, structure, new Committer(structure, appender, extension));
  }

  /** File offsets count from the start of the file, addresses from here. */
  get base(): number {
    return this.#committer.appender.base;
  }

  /** Puts bytes, which must stay as they are, at the end of the file; gives their address. */
  *append(bytes: Uint8Array): Io<number> {
    const { appender } = this.#committer;
    const address = appender.position;
    if (this.#waiting.length === 0) this.#waitingAt = address;
    this.#waiting.push(bytes);
    this.#bytes += bytes.length;
    appender.position += bytes.length;
    if (this.#bytes >= BATCH) yield* this.flush();
    return address;
  }

  /** Everything that was appended is written, and its buffers are free. */
  *flush(): Io<void> {
    const { appender } = this.#committer;
    if (this.#waiting.length === 0) return;
    yield* appender.reserve(appender.position);
    yield { op: 'write', parts: this.#waiting, offset: appender.base + this.#waitingAt };
    this.#waiting = [];
    this.#bytes = 0;
  }

  /** From here on the file is what the structure says. */
  *commit(): Io<void> {
    yield* this.flush();
    yield* this.#committer.write(this.#committer.plan());
  }

  /** Cuts the file to size, whether the commit was made or not. */
  *close(): Io<void> {
    yield* this.#committer.appender.close();
  }
}
