import { type ByteStorage, type CommonOptions, type File, isH5LogError, type TypedArray } from 'h5log';
import type { FaultyStorage } from '../../storage/faulty.ts';
import { figures } from './compare.ts';
import { scribble } from './posts.ts';
import type { Setup } from './program.ts';
import { Difference, ModelFile } from './state.ts';
import { below, chance, pick, type Random, shown } from './types.ts';

/** A flush on its way: what it will have committed, and the buffers it must have read by then. */
interface Flight {
  readonly snapshot: ModelFile;
  readonly lent: TypedArray[];
}

/** A file and the model of it, what is on its way into the file, and what every commit must hold. */
export class Flushes {
  protected readonly setup: Setup;
  protected readonly storage: ByteStorage | string;
  protected readonly disk: FaultyStorage | null;
  protected file: File;
  protected options: CommonOptions;
  protected model = new ModelFile();
  protected readonly snapshots = new Map<number, ModelFile>();
  protected lent: TypedArray[] = [];
  protected flights: Promise<void>[] = [];
  protected reads: Promise<void>[] = [];
  protected armed = false;
  protected wrong: unknown = null;

  protected constructor(setup: Setup, storage: ByteStorage | string, disk: FaultyStorage | null, file: File) {
    this.setup = setup;
    this.options = setup.create;
    this.storage = storage;
    this.disk = disk;
    this.file = file;
    this.snapshots.set(file.sequence, this.model.clone());
  }

  protected get blocks(): boolean {
    return this.setup.storage !== 'async';
  }

  protected same(what: string, got: unknown, expected: unknown): void {
    if (shown(got) !== shown(expected)) throw new Difference(`${what}: ${shown(got)}, expected ${shown(expected)}`);
  }

  protected takeOff(): Flight {
    const flight = { snapshot: this.model.clone(), lent: this.lent };
    this.lent = [];
    return flight;
  }

  protected landed({ snapshot, lent }: Flight, sequence: number): void {
    figures.commits++;
    this.snapshots.set(sequence, snapshot);
    lent.forEach(scribble);
  }

  protected crashed(flight: Flight, error: unknown): void {
    if (!isH5LogError(error, 'STORAGE') || !this.armed) throw error;
    figures.failures++;
    this.lent.push(...flight.lent);
  }

  /** True if it succeeded. */
  protected flushNow(): boolean {
    const flight = this.takeOff();
    try {
      const commit = this.file.flushSync();
      this.landed(flight, commit.sequence);
      this.same('the last sequence', this.file.sequence, commit.sequence);
      this.same('pending after a flush', this.file.pending, { requests: 0, bytes: 0 });
      return true;
    } catch (error) {
      this.crashed(flight, error);
      return false;
    }
  }

  flushSync(): void {
    if (this.blocks) this.flushNow();
  }

  flushLater(): void {
    const flight = this.takeOff();
    this.flights.push(
      this.file.flush().then(
        ({ sequence }) => this.landed(flight, sequence),
        (error: unknown) => this.crashed(flight, error),
      ),
    );
  }

  async flush(): Promise<void> {
    this.flushLater();
    await Promise.all(this.flights);
  }

  /** Everything that is under way comes to its end. */
  async settle(): Promise<void> {
    await Promise.all([...this.flights, ...this.reads]);
    this.flights = [];
    this.reads = [];
    this.disk?.heal();
    this.armed = false;
  }

  /** The next operation of a kind fails: of a flush now, or of whatever comes until the next settling. */
  async failing(random: Random): Promise<void> {
    const disk = this.disk;
    if (!disk) return;
    if (this.armed) await this.settle();
    const op = pick(random, ['write', 'write', 'sync', 'truncate'] as const);
    // When a superblock is there and the flush fails all the same, the old one is put back. If that fails as well, readers see a
    // commit that was reported as failed: two failed writes in a row can do that, one alone must not.
    const times = op === 'write' ? 1 : 1 + below(random, 2);
    const landed = pick(random, ['none', 'torn'] as const);
    const fault = { op, at: disk.counts[op] + below(random, 3), times, code: pick(random, ['ENOSPC', 'EIO']), landed };
    if (chance(random, 0.5)) {
      this.armed = true;
      disk.fail(fault);
      return;
    }
    await this.settle();
    this.armed = true;
    disk.fail({ ...fault, at: disk.counts[op] + below(random, 3) });
    const { injected } = disk;
    const { pending, sequence } = this.file;
    const flight = this.takeOff();
    const outcome = await (this.blocks && chance(random, 0.5)
      ? (async () => this.file.flushSync())()
      : this.file.flush()
    ).then(
      (commit) => ({ commit }),
      (error: unknown) => ({ error }),
    );
    if ('error' in outcome) {
      this.crashed(flight, outcome.error);
      this.same('pending after a failed flush', this.file.pending, pending);
      this.same('sequence after a failed flush', this.file.sequence, sequence);
    } else {
      this.landed(flight, outcome.commit.sequence);
      if (disk.injected > injected) throw new Difference('an operation failed and the flush did not');
    }
    disk.heal();
    this.armed = false;
  }
}
