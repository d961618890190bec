import { SUPERBLOCK_SIZE } from '../../src/hdf5/format/superblock.ts';
import { openStructure } from '../../src/hdf5/open.ts';
import { newStructure, prepareWriting } from '../../src/hdf5/prepare-writing.ts';
import { Appender } from '../../src/hdf5/write/appender.ts';
import { Committer } from '../../src/hdf5/write/commit.ts';
import type { Structure } from '../../src/hdf5/write/structure.ts';
import { driveSync, type Io } from '../../src/storage/io.ts';
import { type MemoryStorage, memoryStorage } from '../../src/storage/memory.ts';

/** A file in memory whose structure is changed and committed. */
export class Edited {
  readonly storage: MemoryStorage;
  readonly structure: Structure;
  readonly committer: Committer;

  private constructor(storage: MemoryStorage, structure: Structure, committer: Committer) {
    this.storage = storage;
    this.structure = structure;
    this.committer = committer;
  }

  static create(): Edited {
    const structure = newStructure();
    const superblock = { base: 0, end: SUPERBLOCK_SIZE, bytes: new Uint8Array(0) };
    const appender = new Appender({ name: 'memory', superblock, power: false });
    return new Edited(memoryStorage(), structure, new Committer(structure, appender, null));
  }

  static open(bytes: Uint8Array): Edited {
    const storage = memoryStorage(bytes);
    const opened = driveSync(storage, openStructure());
    driveSync(storage, prepareWriting(opened));
    const appender = new Appender({ name: 'memory', superblock: opened.superblock, power: false });
    return new Edited(storage, opened.structure, new Committer(opened.structure, appender, opened.extension));
  }

  run<T>(io: Io<T>): T {
    return driveSync(this.storage, io);
  }

  commit(): void {
    if (this.committer.pending) this.run(this.committer.write(this.committer.plan()));
  }

  /** Commits; then the file as somebody else would find it. */
  reopened(): Edited {
    this.commit();
    return Edited.open(this.storage.bytes());
  }
}
