import { type Communicator, type Dataset, isH5LogError, type TypedArray } from 'h5log';
import { ATTRIBUTES, PATHS, randomAttribute, randomDataset, randomShape } from '../log/model/choices.ts';
import { figures } from '../log/model/compare.ts';
import { type Post, randomManyPost, randomPost, scribble } from '../log/model/posts.ts';
import { compareRead, compareReadMany } from '../log/model/reads.ts';
import { type Chosen, randomWhere } from '../log/model/selections.ts';
import { Difference, ModelDataset, sizeOf } from '../log/model/state.ts';
import { below, chance, pick, type Random, randomType } from '../log/model/types.ts';
import { random as randomFrom } from '../seed.ts';
import { arm, type Fault, heal } from './model-faults.ts';
import { Session } from './model-session.ts';
import { SharedDataset } from './model-shared.ts';

/** How often each kind of step comes. */
export const WEIGHTS = {
  makeDataset: 7,
  makeGroup: 1,
  post: 30,
  resize: 8,
  comeBack: 5,
  attribute: 3,
  remove: 2,
  move: 2,
  hardLink: 1,
  softLink: 1,
  flush: 14,
  read: 12,
  look: 3,
  commits: 3,
  reader: 4,
  readers: 2,
  live: 3,
  reopen: 6,
  detach: 3,
  failing: 6,
  differ: 5,
  burst: 1,
};
export type StepKind = keyof typeof WEIGHTS;

interface Found {
  readonly path: string;
  readonly shared: SharedDataset;
}

interface RankPost extends Found {
  readonly rank: number;
  readonly post: Post;
}

/**
 * Takes a file and the model of it through the steps of a program. `random` is the same on all ranks; what a rank does by itself
 * comes from a seed that all know, so that everybody can keep the books for everybody.
 */
export class Machine extends Session {
  static async start(world: Communicator, path: string, random: Random): Promise<Machine> {
    const machine = new Machine(world, path, below(random, 4));
    const crowded = chance(random, 0.03);
    await machine.create(random, crowded);
    machine.parts = Math.min(machine.subfiles, machine.members.length);
    if (crowded) await machine.#crowd(random);
    return machine;
  }

  /** Each rank posts very many blocks of one element: of a table of more than 1 MiB every rank writes its own section. */
  async #crowd(random: Random): Promise<void> {
    const size = 100_000;
    const type = randomType(random);
    const dataset = this.file?.createDataset('crowd', { dtype: type.dtype, shape: [size] });
    const shared = new SharedDataset(new ModelDataset(type, [size], [size], 0), this.world.size);
    this.state.datasets.set('crowd', shared);
    const each = Math.ceil(90_000 / this.members.length);
    for (const [rank] of this.members.entries()) {
      const [first, step] = [below(random, 1000), 2 * below(random, 1000) + 7];
      const starts = Array.from({ length: each }, (_, i) => (first + i * step) % size);
      const values = starts.map((_, i) => (i * 7 + rank) % 101);
      if (rank === this.rank) dataset?.writeMany(values.map((v) => type.value(v)) as number[], starts, [1]);
      shared.post(
        rank,
        starts.map((at) => [at]),
        values,
      );
    }
    this.mustLand(await this.flushed(true));
    await this.look();
    if (chance(random, 0.2)) return;
    // What follows is quicker without.
    this.file?.delete('crowd');
    this.state.delete('crowd');
  }

  async step(kind: StepKind, random: Random): Promise<void> {
    figures.steps++;
    await this[kind](random);
  }

  // ---------------------------------------------------------------- structure, by all members alike

  #choose(random: Random, accept: (shared: SharedDataset) => boolean = () => true): Found | undefined {
    const all = [...this.state.datasets].filter(([, shared]) => accept(shared));
    if (all.length === 0) return undefined;
    const [path, shared] = pick(random, all);
    return { path, shared };
  }

  /** The dataset itself, on members: found anew, or as it was made, whatever its name is now. */
  #dataset(random: Random, { path, shared }: Found): Dataset | undefined {
    const again = chance(random, 0.6);
    const known = this.handles.get(shared);
    return known && again ? known : this.file?.dataset(path);
  }

  makeDataset(random: Random): void {
    const path = pick(random, PATHS);
    const { options, model } = randomDataset(random);
    if (this.state.has(path)) {
      if (this.file) this.refused(() => this.file?.createDataset(path, options), 'EXISTS');
      return;
    }
    const shared = new SharedDataset(model, this.world.size);
    const dataset = this.file?.createDataset(path, options);
    if (dataset) this.handles.set(shared, dataset);
    this.state.makeWay(path);
    this.state.datasets.set(path, shared);
  }

  makeGroup(random: Random): void {
    const path = pick(random, ['p', 'g/_q', 'p/r/s']);
    if (this.state.has(path)) return;
    this.file?.createGroup(path);
    this.state.makeGroup(path);
  }

  resize(random: Random): void {
    const found = this.#choose(random);
    const shape = found && randomShape(random, found.shared.base);
    if (!shape) return;
    this.#resizeTo(random, found, shape);
    // Smaller and larger again before anybody flushes.
    const again = chance(random, 0.4) && randomShape(random, found.shared.base);
    if (again) this.#resizeTo(random, found, again);
  }

  /** Committed elements go and come back, and are written by some ranks, all in one flush. */
  async comeBack(random: Random): Promise<void> {
    const found = this.#choose(random, ({ base }) => sizeOf(base.shape) > 0 && base.shape.length > 0);
    if (!found) return;
    if (chance(random, 0.7)) {
      this.post(random, found.shared);
      this.mustLand(await this.flushed(true));
    }
    const { shape } = found.shared.base;
    const along = below(random, shape.length);
    const less = shape.map((n, d) => (d === along ? below(random, n) : n));
    this.#resizeTo(random, found, less);
    if (chance(random, 0.3)) this.post(random, found.shared);
    this.#resizeTo(random, found, shape);
    this.post(random, found.shared);
    if (chance(random, 0.5)) await this.look();
    if (chance(random, 0.5)) this.mustLand(await this.flushed(true));
    await this.look();
  }

  #resizeTo(random: Random, found: Found, shape: readonly number[]): void {
    this.#dataset(random, found)?.resize(shape);
    found.shared.resize(shape);
  }

  attribute(random: Random): void {
    const found = this.#choose(random);
    const place = below(random, 4);
    const groups = [...this.state.groups];
    const [group, ofGroup] = groups.length > 0 ? pick(random, groups) : ['', null];
    const [object, model] =
      place < 2 && found
        ? [this.#dataset(random, found), found.shared.base.attributes]
        : place === 2 && ofGroup
          ? [this.file?.group(group), ofGroup]
          : [this.file, this.state.attributes];
    const name = pick(random, ATTRIBUTES);
    const value = randomAttribute(random);
    if (model.has(name) && chance(random, 0.3)) {
      object?.attributes.delete(name);
      model.delete(name);
    } else {
      object?.attributes.set(name, value);
      model.set(name, value);
    }
  }

  #anyPath(random: Random): string | undefined {
    const all = [...this.state.datasets.keys(), ...this.state.soft.keys(), ...this.state.groups.keys()];
    return all.length > 0 ? pick(random, all) : undefined;
  }

  remove(random: Random): void {
    const path = this.#anyPath(random);
    if (path === undefined) return;
    this.file?.delete(path);
    this.state.delete(path);
  }

  #freePath(random: Random): string | undefined {
    const free = [...PATHS, 'n', 'o/t'].filter((path) => !this.state.has(path));
    return free.length > 0 ? pick(random, free) : undefined;
  }

  move(random: Random): void {
    const from = this.#anyPath(random);
    const to = this.#freePath(random);
    if (from === undefined || to === undefined) return;
    const inTheWay = [...this.state.datasets.keys(), ...this.state.soft.keys()].some((path) =>
      to.startsWith(`${path}/`),
    );
    if (to.startsWith(`${from}/`) || inTheWay) return;
    // Soft links lead to datasets, or nowhere: no group comes where one of them points.
    const targets = new Set(this.state.soft.values());
    const arrives = (path: string): boolean =>
      (path === from || path.startsWith(`${from}/`)) && targets.has(`${to}${path.slice(from.length)}`);
    if ([...this.state.groups.keys()].some(arrives)) return;
    this.file?.move(from, to);
    this.state.move(from, to);
  }

  hardLink(random: Random): void {
    const found = this.#choose(random);
    const to = this.#freePath(random);
    if (!found || to === undefined) return;
    this.file?.createHardLink(to, found.path);
    this.state.makeWay(to);
    this.state.datasets.set(to, found.shared);
  }

  softLink(random: Random): void {
    const found = this.#choose(random);
    const to = this.#freePath(random);
    if (!found || to === undefined) return;
    this.file?.createSoftLink(to, `/${found.path}`);
    this.state.makeWay(to);
    this.state.soft.set(to, found.path);
  }

  // ---------------------------------------------------------------- posting, by each rank for itself

  post(random: Random, only?: SharedDataset): void {
    const seed = below(random, 2 ** 31);
    const all = this.members.flatMap((_, rank) => this.#postsOf(randomFrom(seed + rank * 7919), rank, only));
    const made = all.map((post) => post.rank !== this.rank || this.#make(post));
    // Only the rank itself knows whether it had room.
    const accepted = this.options.bufferLimit === undefined ? null : this.told(made);
    all.forEach(({ shared, post, rank }, i) => {
      if (accepted?.[rank]?.[i] ?? true) shared.post(rank, post.at, post.values);
    });
  }

  #postsOf(random: Random, rank: number, only: SharedDataset | undefined): RankPost[] {
    const posts: RankPost[] = [];
    for (let left = pick(random, [0, 0, 1, 1, 2, 4]); left > 0; left--) {
      const found = this.#choose(random, (shared) => !only || shared === only);
      if (!found) break;
      const { base } = found.shared;
      const add = (to: Found, chosen: Chosen): void => {
        posts.push({ ...to, rank, post: randomPost(random, to.shared.base, chosen) });
      };
      const kind = random();
      if (kind < 0.7) add(found, randomWhere(random, base.shape));
      else if (kind < 0.85) posts.push({ ...found, rank, post: randomManyPost(random, base) });
      else {
        // One selection object for several datasets.
        const alike = [...this.state.datasets].filter(
          ([, { base: other }]) => other.shape.length === base.shape.length,
        );
        const least = base.shape.map((_, d) => Math.min(...alike.map(([, other]) => other.base.shape[d] as number)));
        const chosen = randomWhere(random, least, true);
        for (const [path, shared] of alike) add({ path, shared }, chosen);
      }
    }
    return posts;
  }

  /** False: there was no room. */
  #make({ path, shared, post }: RankPost): boolean {
    const file = this.file as NonNullable<typeof this.file>;
    const before = file.pending;
    try {
      post.make(this.handles.get(shared) ?? file.dataset(path));
    } catch (error) {
      if (!isH5LogError(error, 'BUFFER_FULL') || this.options.bufferLimit === undefined) throw error;
      this.same('pending after BUFFER_FULL', file.pending, before);
      figures.refused++;
      return false;
    }
    this.same('pending bytes', file.pending.bytes, before.bytes + post.bytes);
    if (post.view && post.copy) scribble(post.view);
    else if (post.view) this.lent.push(post.view);
    return true;
  }

  async burst(random: Random): Promise<void> {
    for (let left = 6 + below(random, 14); left > 0; left--) {
      this.post(random);
      this.mustLand(await this.flushed(true));
    }
    await this.look();
  }

  // ---------------------------------------------------------------- reading, by some ranks for themselves

  async read(random: Random): Promise<void> {
    const own = randomFrom(below(random, 2 ** 31) + this.world.rank * 7919);
    if (this.file) {
      for (let left = below(own, 4); left > 0; left--) {
        const found = this.#choose(own);
        if (!found) break;
        const dataset = this.#dataset(own, found) as Dataset;
        const pair = { path: found.path, model: found.shared.seenBy(this.rank), dataset };
        const now = chance(own, 0.6);
        await (chance(own, 0.8) ? compareRead(own, pair, now) : compareReadMany(own, pair, now));
      }
    }
    // Those that only post go on at once; a flush waits for all of them anyway.
  }

  // ---------------------------------------------------------------- failing

  /** One rank's storage fails once in the next flush: nothing is committed, and the same error is thrown by all. */
  async failing(random: Random): Promise<void> {
    const rank = below(random, this.members.length);
    const fault: Fault = {
      call: pick(random, ['write', 'write', 'write', 'sync', 'truncate'] as const),
      // Data, the rest and the superblock, with subfiles of two files.
      after: pick(random, [0, 0, 1, 1, 2, 2, 3, 4, 5]),
      code: pick(random, ['ENOSPC', 'EIO'] as const),
      torn: chance(random, 0.5),
    };
    this.post(random);
    const before = this.#account();
    if (this.rank === rank) arm(fault);
    // The call that blocks, also on one rank: those are the calls that can be made to fail.
    const outcome = await this.flushed(true);
    const injected = this.told(this.rank === rank ? heal() : 0)[rank];
    if (!outcome.error) {
      if (injected !== 0) throw new Difference(`an operation failed (${JSON.stringify(fault)}) and the flush did not`);
      this.mustLand(outcome);
      return;
    }
    if (injected !== 1) throw new Difference(`a flush failed, and nothing made it: ${outcome.error.message}`);
    this.#mustHaveFailed(outcome.error, rank, before);
    await this.#afterFailure(random);
  }

  #account(): unknown {
    return this.file && [this.file.pending, this.file.sequence];
  }

  #mustHaveFailed(
    error: { code: string; message: string; rank: number | undefined },
    rank: number,
    before: unknown,
  ): void {
    figures.failures++;
    this.same('the code of a failed flush', error.code, 'STORAGE');
    if (this.members.length > 1) {
      this.same('the rank that failed', error.rank, rank);
      if (!error.message.startsWith(`rank ${rank}: `))
        throw new Difference(`the error does not say whose: ${error.message}`);
    }
    this.same('pending and sequence after a failed flush', this.#account(), before);
  }

  /** The last commit stands, everything is still pending, and some day it works. */
  async #afterFailure(random: Random): Promise<void> {
    if (chance(random, 0.5)) await this.reader(random);
    if (chance(random, 0.5)) await this.look();
    if (chance(random, 0.3)) this.resize(random);
    if (chance(random, 0.5)) this.post(random);
    if (chance(random, 0.7)) this.mustLand(await this.flushed(chance(random, 0.5)));
  }

  /** One rank does something else than the others: the next flush fails on all, and the structure is that of the last commit again. */
  async differ(random: Random): Promise<void> {
    if (this.members.length === 1) return;
    this.mustLand(await this.flushed(true));
    this.post(random);
    const before = this.#account();
    for (let left = below(random, 5); left > 0; left--) this.#inVain(random);
    const odd = below(random, this.members.length);
    const [kind, now] = [below(random, 4), chance(random, 0.5)];
    const isOdd = this.rank === odd;
    if (kind === 0) this.file?.attributes.set('differs', isOdd ? 1 : 2);
    else if (kind === 1 && isOdd) this.file?.createGroup('/alone');
    else if (kind === 2 && !isOdd) this.file?.createGroup('/without');
    else if (kind === 3 && isOdd) this.refused(() => this.file?.delete('/nothing there'), 'NOT_FOUND');
    // A call that succeeds on all ranks: an error of one call would be what the flush reports.
    if (chance(random, 0.5)) this.file?.attributes.set('vain', 'x');
    const { error } = await this.flushed(now);
    this.same('the code of a flush of ranks that differ', error?.code, kind === 3 ? 'NOT_FOUND' : 'MISMATCH');
    this.same('the rank that differs', error?.rank, kind === 3 ? odd : Math.max(odd, 1));
    figures.failures++;
    // Objects are found by the paths that they had in the last commit.
    this.handles.clear();
    this.same('pending and sequence after a flush of ranks that differ', this.#account(), before);
    await this.look();
    await this.#afterFailure(random);
  }

  /** A change by all members that does not last. */
  #inVain(random: Random): void {
    const found = this.#choose(random);
    const shape = found && randomShape(random, found.shared.base);
    const path = this.#anyPath(random);
    const to = this.#freePath(random);
    const name = `vain${below(random, 1000)}`;
    const kind = below(random, 6);
    const { file } = this;
    if (!file) return;
    try {
      if (kind === 0) {
        const size = 3 + this.rank;
        file
          .createDataset(name, { dtype: 'int8', shape: [9] })
          .write(new Int8Array(size), { start: [0], count: [size] });
      } else if (kind === 1 && found && shape) file.dataset(found.path).resize(shape);
      else if (kind === 2 && path !== undefined) file.delete(path);
      else if (kind === 3 && path !== undefined && to !== undefined) file.move(path, to);
      else if (kind === 4 && path !== undefined) file.get(path)?.attributes.set(name, 1);
      else file.attributes.set(name, 'x');
    } catch (error) {
      // What was deleted before, on all ranks alike; or there is no room for the post.
      if (!isH5LogError(error)) throw error;
    }
  }

  /** A lent buffer of one rank is gone when it is needed. */
  async detach(random: Random): Promise<void> {
    const found = this.#choose(random, ({ base }) => base.type.isNumber && sizeOf(base.shape) > 0);
    if (!found) return;
    this.post(random);
    const rank = below(random, this.members.length);
    const { base } = found.shared;
    const make = pick(random, [Int8Array, Float64Array, Uint16Array]);
    if (this.rank === rank) {
      const view: TypedArray = new make(sizeOf(base.shape));
      this.file?.dataset(found.path).write(view, undefined, { copy: false });
      structuredClone(view.buffer, { transfer: [view.buffer as ArrayBuffer] });
    }
    const before = this.#account();
    for (let times = 1 + below(random, 2); times > 0; times--) {
      const { error } = await this.flushed(chance(random, 0.5));
      if (!error) throw new Difference('a flush without one of its buffers succeeded');
      this.#mustHaveFailed(error, rank, before);
    }
    await this.reader(random);
    // The post stays: only the end of the dataset, or of its elements, takes it away.
    if (base.shape.length === 0 || chance(random, 0.3)) this.#forget(found.shared);
    else {
      const { shape } = base;
      this.#resizeTo(
        random,
        found,
        shape.map((n, d) => (d === 0 ? 0 : n)),
      );
      if (chance(random, 0.7)) this.#resizeTo(random, found, shape);
    }
    await this.#afterFailure(random);
  }

  /** Deletes a dataset under all its names. */
  #forget(shared: SharedDataset): void {
    for (const [path, other] of [...this.state.datasets]) {
      if (other !== shared) continue;
      this.file?.delete(path);
      this.state.delete(path);
    }
  }
}
