import { readdirSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import {
  type Commit,
  type Communicator,
  type CreateOptions,
  type Dataset,
  File,
  isH5LogError,
  solo,
  type TypedArray,
} from 'h5log';
import { figures } from '../log/model/compare.ts';
import { scribble } from '../log/model/posts.ts';
import { Difference } from '../log/model/state.ts';
import { below, chance, pick, type Random, shown } from '../log/model/types.ts';
import { random as randomFrom } from '../seed.ts';
import { compareView, type SharedDataset, SharedFile, type View } from './model-shared.ts';

/** What a flush came to on one rank. */
export interface Outcome {
  readonly commit?: Commit;
  readonly error?: { readonly code: string; readonly message: string; readonly rank: number | undefined };
}

type Open = Pick<CreateOptions, 'bufferLimit' | 'indexLimit' | 'durability' | 'checksum'>;

/**
 * The file of a program as one thread sees it. All threads follow the same program; those that are members at the moment have
 * the file open together, the others only keep the books.
 */
export class Session {
  readonly world: Communicator;
  readonly path: string;
  /** Of a new file, as it was asked for. */
  readonly subfiles: number;
  protected members: number[] = [];
  protected file: File | null = null;
  protected options: Open = {};
  protected state = new SharedFile();
  protected readonly handles = new Map<SharedDataset, Dataset>();
  /** What every commit must hold. */
  protected readonly snapshots = new Map<number, View>();
  protected sequence = -1;
  /** Buffers of this rank that the next flush reads. */
  protected lent: TypedArray[] = [];
  #comm: Communicator | null = null;
  #live: File | null = null;
  #lived = -1;

  constructor(world: Communicator, path: string, subfiles: number) {
    this.world = world;
    this.path = path;
    this.subfiles = subfiles;
  }

  /** This thread's rank in the file; -1: it has not opened it. */
  protected get rank(): number {
    return this.members.indexOf(this.world.rank);
  }

  protected same(what: string, got: unknown, expected: unknown): void {
    if (shown(got) !== shown(expected)) throw new Difference(`${what}: ${shown(got)}, expected ${shown(expected)}`);
  }

  protected refused(call: () => void, code: Parameters<typeof isH5LogError>[1]): void {
    try {
      call();
    } catch (error) {
      if (isH5LogError(error, code)) return;
      throw error;
    }
    throw new Difference(`nothing thrown where ${code} was expected`);
  }

  /** Tells all threads something; gives what the members told. */
  protected told<X>(mine: X): X[] {
    const texts = this.world.allgather(new TextEncoder().encode(JSON.stringify(mine)));
    return this.members.map((rank) => JSON.parse(new TextDecoder().decode(texts[rank])) as X);
  }

  // ---------------------------------------------------------------- opening and closing

  #chooseMembers(random: Random): void {
    const all = Array.from({ length: this.world.size }, (_, rank) => rank);
    const kind = random();
    if (kind < 0.55) this.members = all;
    else if (kind < 0.75) this.members = [pick(random, all)];
    else this.members = all.filter(() => chance(random, 0.6));
    if (this.members.length === 0) this.members = all;
    this.#comm = this.#commFor(random);
  }

  #commFor(random: Random): Communicator | null {
    const isMember = this.rank >= 0;
    if (this.members.length === 1 && chance(random, 0.5)) return isMember ? solo() : null;
    if (this.members.length === this.world.size && chance(random, 0.5)) return this.world;
    const part = this.world.split(isMember ? 1 : 0);
    if (isMember) return part;
    part.close();
    return null;
  }

  #randomOptions(random: Random): Open {
    return {
      durability: chance(random, 0.2) ? 'power' : 'process',
      checksum: chance(random, 0.5),
      ...(chance(random, 0.3) && { indexLimit: below(random, 300) }),
      ...(chance(random, 0.2) && { bufferLimit: 20 + below(random, 400) }),
    };
  }

  /** `crowded`: its tables may become so large that each rank writes its own part of them. */
  async create(random: Random, crowded: boolean): Promise<void> {
    this.#chooseMembers(random);
    this.options = crowded ? {} : this.#randomOptions(random);
    const table = {
      merge: chance(random, 0.7),
      encode: chance(random, 0.7),
      share: chance(random, 0.7),
      compress: crowded ? false : pick(random, [true, false, 0, 2, 8]),
    };
    const classic = { format: 'classic' as const, bigEndian: chance(random, 0.5) };
    const logs = pick(random, ['shared', 'shared', 'group', 'dataset'] as const);
    const layout = { logs, table: chance(random, 0.3) ? classic : table };
    // Sometimes there is a file of that name already, with other subfiles.
    const before = chance(random, 0.15) ? below(random, 4) : null;
    const comm = this.#comm;
    if (comm && before !== null) {
      const old = File.createSync(this.path, { comm, subfiles: before });
      old.createDataset('old', { dtype: 'int8', shape: [3] }).write([1, 2, 3]);
      old.closeSync();
    }
    const options = { ...this.options, ...layout, subfiles: this.subfiles };
    const now = chance(random, 0.5);
    if (comm)
      this.file = now
        ? File.createSync(this.path, { ...options, comm })
        : await File.create(this.path, { ...options, comm });
    this.sequence = this.told(this.file?.sequence ?? -1)[0] as number;
    this.snapshots.set(this.sequence, this.state.view());
  }

  protected async close(random: Random): Promise<void> {
    const now = chance(random, 0.5);
    if (this.file) {
      if (now) this.file.closeSync();
      else await this.file.close();
    }
    const sequences = this.told(this.file?.sequence ?? -1);
    this.same('the last sequence on all ranks', new Set(sequences).size, 1);
    this.#landed(sequences[0] as number);
    if (this.#comm && this.#comm !== this.world && this.#comm.kind !== 'solo') this.#comm.close();
    this.#comm = null;
    this.file = null;
  }

  /** With other ranks, or the same. */
  async reopen(random: Random): Promise<void> {
    await this.close(random);
    this.#chooseMembers(random);
    this.options = this.#randomOptions(random);
    this.handles.clear();
    const comm = this.#comm;
    const now = chance(random, 0.5);
    if (comm) {
      const options = { ...this.options, comm, mode: 'r+' } as const;
      this.file = now ? File.openSync(this.path, options) : await File.open(this.path, options);
    }
    this.same(
      'the sequence after opening again',
      new Set(this.told(this.file?.sequence ?? -1)),
      new Set([this.sequence]),
    );
  }

  // ---------------------------------------------------------------- flushing

  /** Flushes on all members; whatever comes of it is the same for all of them. */
  protected async flushed(now: boolean): Promise<Outcome> {
    let mine: Outcome = {};
    if (this.file) {
      try {
        mine = { commit: now ? this.file.flushSync() : await this.file.flush() };
      } catch (error) {
        if (!isH5LogError(error)) throw error;
        mine = { error: { code: error.code, message: error.message, rank: error.rank } };
      }
    }
    const all = this.told(mine);
    for (const other of all) this.same('what a flush gave on all ranks', other, all[0]);
    return all[0] as Outcome;
  }

  protected mustLand({ commit, error }: Outcome): void {
    if (!commit) throw new Difference(`a flush failed: ${error?.message}`);
    if (this.file) {
      this.same('the last sequence', this.file.sequence, commit.sequence);
      this.same('pending after a flush', this.file.pending, { requests: 0, bytes: 0 });
    }
    this.#landed(commit.sequence);
  }

  /** What was pending is committed; if there was nothing, nothing may have changed. */
  #landed(sequence: number): void {
    this.state.commit();
    const view = this.state.view();
    if (sequence === this.sequence)
      this.same('a flush without a commit', this.snapshots.get(sequence)?.text(), view.text());
    else {
      this.same('the next sequence', sequence, this.sequence + 1);
      figures.commits++;
      this.snapshots.set(sequence, view);
      this.sequence = sequence;
    }
    for (const view of this.lent.splice(0)) scribble(view);
  }

  async flush(random: Random): Promise<void> {
    this.mustLand(await this.flushed(chance(random, 0.5)));
    // A flush with nothing pending anywhere is the last commit again.
    if (chance(random, 0.2)) {
      const { sequence } = this;
      this.mustLand(await this.flushed(chance(random, 0.5)));
      this.same('the sequence after an empty flush', this.sequence, sequence);
    }
  }

  // ---------------------------------------------------------------- looking at it

  commits(): void {
    const mine = this.file?.commits() ?? [];
    const all = this.told(mine);
    for (const other of all) this.same('commits on all ranks', other, all[0]);
    this.compareCommits(all[0] as readonly Commit[], this.sequence);
  }

  protected compareCommits(commits: readonly Commit[], last: number): void {
    const known = [...this.snapshots.keys()].filter((sequence) => sequence <= last);
    this.same(
      'commits',
      commits.map(({ sequence }) => sequence),
      known,
    );
  }

  protected snapshot(sequence: number): View {
    const found = this.snapshots.get(sequence);
    if (!found) throw new Difference(`a reader found commit ${sequence}, which nobody made`);
    return found;
  }

  /** Opens the file for reading, alone or with all others, now or as of an earlier commit, and compares everything. */
  protected async compareCommitted(random: Random, comm: Communicator): Promise<void> {
    const asOf = chance(random, 0.5) ? pick(random, [...this.snapshots.keys()]) : undefined;
    const options = {
      comm,
      ...(chance(random, 0.3) && { indexLimit: below(random, 200) }),
      ...(asOf !== undefined && { asOf }),
    };
    const file = chance(random, 0.5) ? File.openSync(this.path, options) : await File.open(this.path, options);
    this.same('the sequence a reader finds', file.sequence, asOf ?? this.sequence);
    await compareView(file, this.snapshot(file.sequence), `a reader of commit ${file.sequence} among ${comm.size}`);
    this.compareCommits(file.commits(), file.sequence);
    file.closeSync();
  }

  /** One thread opens the file by itself while others have it open for writing: it sees exactly the last commit. */
  async reader(random: Random): Promise<void> {
    const who = below(random, this.world.size);
    const own = randomFrom(below(random, 2 ** 31));
    if (this.world.rank === who) await this.compareCommitted(own, solo());
    this.world.barrier();
  }

  async readers(random: Random): Promise<void> {
    await this.compareCommitted(random, this.world);
  }

  /** Readers that stay open and move on. */
  async live(random: Random): Promise<void> {
    if (this.#live) {
      const moved = chance(random, 0.5) ? this.#live.refreshSync() : await this.#live.refresh();
      this.same('whether there was something newer', moved, this.sequence > this.#lived);
    } else this.#live = File.openSync(this.path, { comm: this.world });
    this.#lived = this.#live.sequence;
    this.same('the sequence of a live reader', this.#lived, this.sequence);
    await compareView(this.#live, this.snapshot(this.#lived), `a live reader at ${this.#lived}`);
    this.compareCommits(this.#live.commits(), this.#lived);
  }

  /** Everything as each member sees it. */
  async look(): Promise<void> {
    if (this.file) await compareView(this.file, this.state.view(this.rank), 'the file as this rank sees it');
    // Nobody goes on while another still reads: what it finds would be another commit.
    this.world.barrier();
  }

  /** Closes and compares everything once more, alone and together; leaves nothing beside the file. */
  async end(random: Random): Promise<void> {
    await this.look();
    this.commits();
    await this.close(random);
    this.#live?.closeSync();
    for (let i = 0; i < 2; i++) await this.reader(random);
    await this.readers(random);
    const last = File.openSync(this.path);
    await compareView(last, this.snapshot(this.sequence), 'the file at the end');
    last.closeSync();
    this.world.barrier();
    if (this.world.rank === 0) this.#nothingStray();
    this.world.barrier();
  }

  #nothingStray(): void {
    const name = basename(this.path);
    const beside = readdirSync(dirname(this.path)).filter((entry) => entry.startsWith(name));
    const found = beside.flatMap((entry) =>
      entry.endsWith('.subfiles') ? readdirSync(`${this.path}.subfiles`).map((part) => `${entry}/${part}`) : [entry],
    );
    const parts = Array.from({ length: this.parts }, (_, g) => `${name}.subfiles/${name}.${g}`);
    this.same('the files', found.sort(), [name, ...parts].sort());
  }

  /** How many subfiles there are: never more than there were ranks when it was made. */
  parts = 0;
}
