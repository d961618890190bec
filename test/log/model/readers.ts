import { type ByteStorage, type Dataset, File, isH5LogError } from 'h5log';
import { type MemoryStorage, memoryStorage } from 'h5log/storage';
import { compareFile } from './compare.ts';
import { Flushes } from './flushes.ts';
import { compareValues, Difference, type ModelFile } from './state.ts';
import { below, chance, pick, type Random } from './types.ts';

/** Others who read the file beside its writer. */
export class Readers extends Flushes {
  #live: File | null = null;
  #lived = 0;
  #seen = 0;
  #liveHandles = new Map<string, Dataset>();

  protected refused(call: () => void, code: Parameters<typeof isH5LogError>[1]): void {
    try {
      call();
    } catch (error) {
      if (isH5LogError(error, code)) return;
      throw error;
    }
    throw new Difference(`nothing thrown where ${code} was expected`);
  }

  async commits(): Promise<void> {
    await this.settle();
    this.#compareCommits(this.file, this.file.sequence);
  }

  #compareCommits(file: File, last: number): void {
    const known = [...this.snapshots.keys()].filter((sequence) => sequence <= last).sort((a, b) => a - b);
    this.same(
      'commits',
      file.commits().map(({ sequence }) => sequence),
      known,
    );
  }

  protected image(): ByteStorage | string {
    if (this.disk) return memoryStorage(this.disk.processImage());
    return typeof this.storage === 'string' ? this.storage : memoryStorage((this.storage as MemoryStorage).bytes());
  }

  /** Another reader opens the file beside the writer, at its last commit and at an earlier one. */
  async reader(random: Random): Promise<void> {
    // A superblock whose write failed may be there for a moment, until the old one is put back.
    if (this.setup.storage === 'node' || this.armed) await this.settle();
    const image = this.image();
    await this.settle();
    await this.compareImage(image, chance(random, 0.5) ? {} : { indexLimit: below(random, 200) });
    const asOf = pick(
      random,
      [...this.snapshots.keys()].filter((sequence) => sequence <= this.#seen),
    );
    await this.compareImage(image, { asOf });
  }

  /** A reader that stays open beside the writer and moves on with it; so do the objects it gave. */
  async live(random: Random): Promise<void> {
    await this.settle();
    if (this.#live) {
      // Reads that were asked for before it moves on are about the old state.
      const old = this.snapshots.get(this.#lived) as ModelFile;
      const reads = [...this.#liveHandles].map(([path, handle]) => this.#readLive(handle, path, old));
      const moved = this.blocks && chance(random, 0.5) ? this.#live.refreshSync() : await this.#live.refresh();
      this.same('whether there was something newer', moved, this.file.sequence > this.#lived);
      await Promise.all(reads);
    } else this.#live = await File.open(this.storage, chance(random, 0.5) ? {} : { indexLimit: below(random, 200) });
    const { sequence } = this.#live;
    this.same('sequence of a live reader', sequence, this.file.sequence);
    this.#lived = sequence;
    const state = this.snapshots.get(sequence) as ModelFile;
    await compareFile(this.#live, state, `live reader at ${sequence}`);
    this.#compareCommits(this.#live, sequence);
    for (const [path, handle] of this.#liveHandles) await this.#readLive(handle, path, state);
    this.#liveHandles = new Map([...state.datasets.keys()].map((path) => [path, (this.#live as File).dataset(path)]));
  }

  async #readLive(handle: Dataset, path: string, state: ModelFile): Promise<void> {
    const model = state.datasets.get(path);
    if (model) compareValues(`live ${path}`, model.type, await handle.read(), model.values);
    else this.refused(() => handle.shape, 'NOT_FOUND');
  }

  protected async compareImage(
    image: ByteStorage | string,
    options: { indexLimit?: number; asOf?: number },
  ): Promise<void> {
    const file = await File.open(image, options);
    this.#seen = file.sequence;
    const model = this.snapshots.get(file.sequence);
    if (!model) throw new Difference(`a reader found commit ${file.sequence}, which nobody made`);
    if (options.asOf !== undefined) this.same('sequence of asOf', file.sequence, options.asOf);
    await compareFile(file, model, `commit ${file.sequence} with ${JSON.stringify(options)}`);
    this.#compareCommits(file, file.sequence);
    await file.close();
  }
}
