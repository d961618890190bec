import { H5LogError } from '../base/errors.ts';
import { pointersOf } from '../dtype/heap-ids.ts';
import { fullType } from '../dtype/model.ts';
import { comesFirst, isAtHome, isStray, type ObjectNode, statedAddress } from '../hdf5/graph/object-node.ts';
import { chunkedLater, unallocated } from '../hdf5/layouts/new-dataset.ts';
import { SCALAR_SPACE, simpleSpace } from '../hdf5/messages/dataspace.ts';
import { deleteAttribute } from '../hdf5/write/attributes.ts';
import { rewriteDataset } from '../hdf5/write/rewrite.ts';
import type { Structure } from '../hdf5/write/structure.ts';
import { ordinaryChunks } from '../space/chunk-shape.ts';
import type { Io } from '../storage/io.ts';
import { type Anchor, type Identity, readAnchor } from './format/anchor.ts';
import { PLAIN_VERSION, POINTER_VERSION, type SubfileState } from './format/commit-record.ts';
import {
  CONFIG,
  LOG_GROUP,
  LOG_NUMBER,
  LOGS_GROUP,
  type LogLayout,
  type PublishState,
  readLayout,
  readLogNumber,
  readPublish,
  readToken,
  type Token,
} from './format/log-group.ts';
import { newToken, writeLogNumber, writePublish, writeToken } from './format/log-group-write.ts';
import { ID, logNames, NUMBER, NUMBERS } from './format/names.ts';
import { freeCopies } from './format/new-anchor.ts';
import { filterEntries } from './format/properties.ts';
import type { TableOptions } from './format/table.ts';
import { type View, writeView } from './format/view.ts';
import { Pointers, statedNumber } from './pointers.ts';
import { type KnownBlocks, LogDataset } from './post/dataset.ts';
import { type PostLimits, Posts } from './post/posts.ts';
import { type DatasetStage, Stage } from './post/stage.ts';
import type { LogData } from './read/boxes.ts';
import { Tables } from './read/tables.ts';
import { WriteOrder } from './read/write-order.ts';
import type { LogStore } from './store.ts';

export interface LogOptions extends PostLimits {
  readonly table: TableOptions;
  readonly checksum: boolean;
  readonly indexLimit: number;
}

/** What tables must know of a dataset, and where it was when the file was opened. */
interface ShapeInFile {
  readonly address: number;
  readonly shape: readonly number[];
  readonly records: boolean;
}

/** The format of tables is that of the file, whatever was asked for. */
function fitting(options: LogOptions, classic: TableOptions['classic']): LogOptions {
  if (!classic && !options.table.classic) return options;
  return { ...options, table: { ...options.table, classic }, keepsPoints: classic !== undefined };
}

/** The log of an open file: what was posted, what is committed, and which datasets there are. */
export class Log extends Posts<LogDataset> {
  declare readonly options: LogOptions;
  readonly structure: Structure;
  /** The file itself: its commit records, and log and tables unless there are subfiles. */
  readonly main: LogStore;
  /** Where log and tables are: the file itself, or its subfiles. Empty: in subfiles that cannot be reached. */
  readonly stores: readonly LogStore[];
  /** Where the data of this rank goes. */
  readonly own: LogStore;
  readonly tables: Tables;
  /** What elements point to. */
  readonly pointers = new Pointers(this);
  /** Version of the commit records that are written; it never goes down. */
  version: number;
  /** Datasets ever created: the ID of the next one. */
  datasets: number;
  /** With subfiles: the state of each that the last commit names. */
  states: readonly SubfileState[] = [];
  /** A dataset was deleted: the next flush rewrites tables in which others refer to its entries. */
  rewrite = false;
  /** Datasets resized since the last flush, on ranks other than the one that posts fill. */
  readonly resized = new Set<LogDataset>();
  /** Several ranks, since the last commit: what resizes cut posts from, as it was, and the fill that they posted. */
  readonly clipped: DatasetStage[] = [];
  readonly fills: Stage[] = [];
  /** Datasets that rows were appended to since the last flush, which writes their new shape. */
  readonly grown = new Set<LogDataset>();
  /** Datasets that this session has made differ from what other programs see. */
  touched = new Set<LogDataset>();
  /** Those of them that could not be published when the session last published, and why: no commit is made to try again. */
  refused: ReadonlyMap<LogDataset, string> = new Map();
  /** Any other dataset may differ as well: what the session found was not published. */
  othersDiffer: boolean;
  /** How many datasets there had been when the session began. */
  readonly found: number;
  /** What this session has committed. */
  readonly written = { bytes: 0, blocks: 0 };
  /** null: one log for all datasets, as the original has it; else logs have numbers. */
  readonly layout: LogLayout | null;
  /** Numbers of logs that may have lost their last dataset. */
  readonly #left = new Set<number>();
  /** As the next commit writes it; null: the file remembers nothing. */
  publishState: PublishState | null;
  /** The commit that other programs see; null: nothing was ever published. */
  published: number | null;
  readonly #datasets = new Map<ObjectNode, LogDataset>();
  /** Anchors of new datasets: parsing them again would cost more than creating them. */
  readonly #made = new WeakMap<ObjectNode, Anchor>();
  readonly #byId = new Map<number, LogDataset>();
  /** Indexes of datasets of an earlier state that nobody has asked for in this one, by ID. */
  #earlier = new Map<number, KnownBlocks>();
  #token: Token | null;
  /** By number, in a file that others have changed; null until it is needed. */
  #owners: ReadonlyMap<number, ObjectNode> | null = null;
  /** IDs below this that are not in `#byId` belong to deleted datasets. */
  #searched = 0;
  /** IDs below this are of datasets that were in the file when it was opened for writing, if h5log alone wrote it. */
  #opened = 0;
  #shapes: Map<number, ShapeInFile> | null = null;

  constructor(structure: Structure, main: LogStore, stores: readonly LogStore[], own: number, options: LogOptions) {
    const layout = structure.now(readLayout(structure));
    super(fitting(options, layout?.classic));
    this.layout = layout;
    this.structure = structure;
    this.main = main;
    this.stores = stores;
    this.own = stores[own] ?? main;
    this.tables = new Tables(stores);
    this.version = layout ? POINTER_VERSION : (main.commit()?.version ?? PLAIN_VERSION);
    this.#token = structure.now(readToken(structure));
    this.publishState = structure.now(readPublish(structure));
    this.published = this.publishState?.sequence ?? null;
    structure.findOwners = () => structure.now(this.owners());
    const last = main.commit();
    this.othersDiffer = last === undefined || !main.isOurs || this.publishState?.sequence !== last.sequence;
    this.datasets = this.#nextId();
    this.found = this.datasets;
    if (structure.referrers && main.isOurs) this.#opened = this.datasets;
    if (structure.referred.size > 0) structure.now(this.pointers.adopt(structure.referred));
    structure.onRelease = (node) => {
      if (node.kind !== 'dataset' || !(this.#made.has(node) || (!node.prepared && node.attributes.has(ID)))) return;
      this.rewrite = true;
      if (import.meta.page || !layout || layout.scope === 'shared') return;
      const number = structure.now(this.#numberOf(node));
      if (number !== undefined) this.#left.add(number);
    };
  }

  /** The next ID. The original counts datasets only when it closes a file; after a crash there may be some beyond the count. */
  #nextId(): number {
    const { structure, main } = this;
    let { datasets } = main.counts;
    if (!structure.writable || main.isOurs) return datasets;
    const owners = structure.now(this.owners());
    const nodes = structure.now(this.#objects()).keys();
    // A copy of a dataset keeps its number for as long as nobody looks for copies: until the next commit.
    for (const number of freeCopies(structure, nodes, owners)) datasets = Math.max(datasets, number + 1);
    return datasets;
  }

  /** Takes over what an earlier state of the same file knows of its tables and blocks: the next read adds what is new. */
  takeOver(earlier: Log): void {
    this.tables.share(earlier.tables);
    this.#earlier = earlier.#earlier;
    for (const [id, dataset] of earlier.#byId) {
      const known = dataset.giveBlocks();
      if (known) this.#earlier.set(id, known);
    }
  }

  get files(): readonly LogData[] {
    return this.stores.map(({ data }) => data);
  }

  get hasSubfiles(): boolean {
    return (this.main.counts.config & CONFIG.subfiling) !== 0;
  }

  /** Makes reads see what the stores hold now. `indexed`: indexes that were complete have the new blocks already. */
  committed(indexed: boolean): void {
    const { stores } = this;
    const ends = stores.map(({ end }) => end);
    // A list that is not copied: a commit of one file costs no more with many tables. The one store may be a subfile.
    const only = stores.length === 1 ? stores[0] : undefined;
    const { coverage } = this.tables.committed;
    if (indexed) coverage.ends = ends;
    this.tables.committed = {
      items: only ? only.committed.tables : stores.flatMap(({ committed }) => committed.tables),
      ends,
      // In one file the order of offsets is the order of writing; between files the commit records tell.
      order:
        !import.meta.page && stores.length > 1 ? new WriteOrder(stores.map((store) => store.historyLater())) : null,
      coverage: indexed ? coverage : { ends },
      numbered: this.layout ? stores.map((store) => store.numberedIn(store.committed)) : [],
    };
  }

  /** The number of the log that a dataset is in. */
  *#numberOf(node: ObjectNode): Io<number | undefined> {
    const anchor = yield* this.anchor(node);
    return anchor && this.numberOf(anchor);
  }

  numberOf({ id, log }: Identity): number {
    const scope = this.layout?.scope;
    return scope === 'shared' ? 0 : scope === 'group' ? (log ?? id) : id;
  }

  /** Numbers of logs that no dataset is in any more. */
  forgotten(): readonly number[] {
    if (import.meta.page) return [];
    const left = this.#left;
    if (left.size > 0 && this.layout?.scope === 'group')
      for (const { logNumber, deleted } of this.structure.now(this.everyDataset()).values())
        if (!deleted) left.delete(logNumber);
    return [...left];
  }

  /** The identity of the next new dataset. Files with subfiles of the original or of h5log 0.1 have no token: their subfiles would not have it. */
  nextIdentity(parent: ObjectNode): Identity {
    const id = this.datasets;
    const isGrouped = this.layout?.scope === 'group';
    const log = isGrouped ? (this.structure.now(readLogNumber(this.structure, parent)) ?? id) : null;
    return { id, token: this.#token || !this.hasSubfiles ? this.token() : null, log };
  }

  /** The token of the file. One of the original or of h5log 0.1 gets it now. */
  token(): Token {
    if (!this.#token) {
      this.#token = newToken();
      writeToken(this.structure, this.structure.root, this.#token);
    }
    return this.#token;
  }

  /** Says in the file whether its objects are a tree, if that has changed: whoever opens it next need not look at all of them. */
  markTree(): void {
    const { structure, publishState: before } = this;
    const { isTree } = structure;
    if (!before || before.isTree === isTree) return;
    this.publishState = { ...before, isTree };
    writePublish(structure, this.publishState);
  }

  /** The next commit makes others see what it has; the returned function says that it does not. */
  publishedAt(sequence: number, copied: number): () => void {
    const before = this.publishState ?? { policy: 'never', sequence: null, copied: 0, isTree: this.structure.isTree };
    this.publishState = { ...before, sequence, copied: before.copied + copied };
    writePublish(this.structure, this.publishState);
    return () => {
      this.publishState = { ...before, policy: this.publishState?.policy ?? 'never' };
      writePublish(this.structure, this.publishState);
    };
  }

  /** Registers a new dataset of a group, which has the next identity. */
  register(node: ObjectNode, anchor: Omit<Anchor, keyof Identity | 'view'>, parent: ObjectNode): void {
    const identity = this.nextIdentity(parent);
    if (identity.log !== null && !parent.attributes.has(LOG_NUMBER))
      writeLogNumber(this.structure, parent, identity.log);
    this.#left.delete(this.numberOf(identity));
    this.#made.set(node, { ...anchor, ...identity, view: null });
    if (pointersOf(anchor.dtype).length > 0) this.version = POINTER_VERSION;
    this.datasets++;
    if (this.publishState?.sequence != null) this.#showEmpty(node, anchor, this.publishState.sequence);
  }

  /** Programs that know nothing of logs may refuse a file for one dataset without a dataspace: where others see datasets, a new one is empty. */
  #showEmpty(node: ObjectNode, anchor: Omit<Anchor, keyof Identity | 'view'>, sequence: number): void {
    const { structure } = this;
    const { shape, maxShape, filters, dtype } = anchor;
    const { size } = fullType(dtype);
    const chunk = ordinaryChunks({ ...anchor, elementSize: size }, filters.length > 0);
    rewriteDataset(structure, node, {
      space: shape.length === 0 ? SCALAR_SPACE : simpleSpace(shape, maxShape),
      layout: chunk ? chunkedLater(chunk) : unallocated,
      ...(chunk ? { filters: filterEntries(filters, size) } : {}),
    });
    const made = this.#made.get(node) as Anchor;
    const view: View = { token: this.token(), id: made.id, sequence, end: 0, way: 'empty', shape, cut: null };
    writeView(structure, node, view);
    this.#made.set(node, { ...made, view });
  }

  /** The anchor of a dataset of this log; undefined for others, copies of its datasets and datasets of another log among them. */
  *anchor(node: ObjectNode): Io<Anchor | undefined> {
    const made = this.#made.get(node);
    if (made) return made;
    const anchor = yield* readAnchor(this.structure, node);
    if (!anchor || !this.#isOwn(anchor.token) || !this.#isShown(anchor)) return undefined;
    if (!this.mayBeCopy(node)) return anchor;
    // It may be the one in memory, or what was read of it apart.
    return (yield* this.owners()).get(anchor.id)?.origin === node.origin ? anchor : undefined;
  }

  /**
   * Whether an object may be a copy of a dataset, which can only be told by a look at all objects. One that is where it says is none, whatever others
   * have done; for those that say nothing, superblock and last commit must do.
   */
  mayBeCopy(node: ObjectNode): boolean {
    return node.attributes.has(ID) && !(isAtHome(node) ?? this.main.isOurs);
  }

  /**
   * Whether the layout of a published dataset shows this log. That of a copy from another file shows what it showed there, and if
   * another program has made the log unreadable the layout is all there is: both are ordinary datasets.
   */
  #isShown({ view, id }: Anchor): boolean {
    return view === null || (view.id === id && !this.main.isRewritten && this.#isOwn(view.token));
  }

  #isOwn(token: Token | null): boolean {
    const own = this.#token;
    return token === null || (own !== null && token.every((byte, i) => byte === own[i]));
  }

  /**
   * The objects that have the numbers of datasets. Of several with the same number all but one are copies. From now on the owners are where
   * they say, as those are that have the numbers by which references lead to them.
   */
  *owners(): Io<ReadonlyMap<number, ObjectNode>> {
    if (this.#owners) return this.#owners;
    const owners = new Map<number, ObjectNode>();
    const numbers = new Map<number, ObjectNode>();
    const refers = this.structure.root.attributes.has(NUMBERS);
    for (const [node] of yield* this.#objects()) {
      if (node.prepared) continue;
      if (refers) this.#mustOwnNumber(node, numbers);
      const anchor =
        node.kind === 'dataset' && node.attributes.has(ID) ? yield* readAnchor(this.structure, node) : undefined;
      if (!anchor || !this.#isOwn(anchor.token) || !this.#isShown(anchor)) continue;
      // Headers move to behind where they were: one before that is a copy. Others see what it has, so that it can do without its original.
      if (!import.meta.page && anchor.view && !this.main.isMoved && node.origin < (statedAddress(node) ?? 0)) continue;
      if (comesFirst(node, owners.get(anchor.id))) owners.set(anchor.id, node);
    }
    for (const list of [owners, numbers]) for (const node of list.values()) if (isStray(node)) node.isClaimed = true;
    this.#owners = owners;
    return owners;
  }

  /** A copy of an object that references lead to has no number. */
  #mustOwnNumber(node: ObjectNode, owners: Map<number, ObjectNode>): void {
    const { structure } = this;
    const number = statedNumber(structure, node);
    if (number === 0) return;
    const known = owners.get(number);
    const copy = comesFirst(node, known) ? known : node;
    if (copy !== node) owners.set(number, node);
    // One that is elsewhere than it says has none, whatever it has.
    if (!copy || isStray(copy)) return;
    if (!structure.writable) copy.attributes.delete(NUMBER);
    else if (!import.meta.page && !this.main.isOurs) deleteAttribute(structure, copy, NUMBER);
  }

  /** The dataset of the log at a node; undefined for a dataset of another kind. */
  *dataset(node: ObjectNode, path: string): Io<LogDataset | undefined> {
    const open = this.#datasets.get(node);
    if (open) return open;
    const anchor = yield* this.anchor(node);
    if (!anchor) return undefined;
    const dataset = new LogDataset(this, node, path, anchor);
    const known = this.#earlier.get(dataset.id);
    if (known) dataset.takeBlocks(known);
    this.#earlier.delete(dataset.id);
    this.#datasets.set(node, dataset);
    this.#byId.set(dataset.id, dataset);
    return dataset;
  }

  /** What tables must know of a dataset; undefined if it was deleted. */
  shapeOf(id: number): { shape: readonly number[]; records: boolean } | undefined {
    if (id >= this.#searched && !this.#byId.has(id)) {
      if (id < this.#opened) return this.#shapeInFile(id);
      this.structure.now(this.everyDataset());
      this.#searched = this.datasets;
    }
    const dataset = this.#byId.get(id);
    return dataset && !dataset.deleted ? dataset : undefined;
  }

  /** Of a dataset that nobody has asked for in this session: all of them are looked at once, and not kept. */
  #shapeInFile(id: number): { shape: readonly number[]; records: boolean } | undefined {
    const { loader } = this.structure;
    this.#shapes ??= this.structure.now(loader.apart(this.#findShapes()));
    const found = this.#shapes.get(id);
    return found && loader.nodes.get(found.address)?.linkCount !== 0 ? found : undefined;
  }

  *#findShapes(): Io<Map<number, ShapeInFile>> {
    const shapes = new Map<number, ShapeInFile>();
    const { loader, referrers } = this.structure;
    for (const address of referrers ? (yield* referrers.survey()).addresses() : []) {
      const node = yield* loader.glimpse(address);
      const anchor = node.kind === 'dataset' && node.linkCount > 0 ? yield* this.anchor(node) : undefined;
      if (!anchor) continue;
      const { id, shape, maxShape } = anchor;
      shapes.set(id, { address, shape, records: maxShape.length > 0 && maxShape[0] === null });
    }
    return shapes;
  }

  /** Every object with a path to it. */
  *#objects(): Io<ReadonlyMap<ObjectNode, string>> {
    const { root, loader } = this.structure;
    const paths = new Map<ObjectNode, string>([[root, '']]);
    for (const [node, path] of paths) {
      for (const link of node.links.values()) {
        if (node === root && (link.name === LOG_GROUP || link.name === LOGS_GROUP)) continue;
        const target = yield* loader.follow(link);
        if (target && !paths.has(target)) paths.set(target, `${path}/${logNames.shownInside(link.name)}`);
      }
    }
    return paths;
  }

  /** Whether a dataset that can be published differs from what others see, or may. */
  get hasUnpublished(): boolean {
    if (this.othersDiffer) return true;
    for (const dataset of this.touched) if (!this.refused.has(dataset)) return true;
    return false;
  }

  /** Every dataset of the log, by ID. */
  *everyDataset(): Io<ReadonlyMap<number, LogDataset>> {
    if (!import.meta.page && this.structure.root.attributes.has(NUMBERS)) yield* this.owners();
    for (const [node, path] of yield* this.#objects()) if (node.kind === 'dataset') yield* this.dataset(node, path);
    return this.#byId;
  }

  override openStage(dataset: LogDataset): DatasetStage {
    this.touched.add(dataset);
    return super.openStage(dataset);
  }

  override mustHoldData(): void {
    if (this.main.counts.config & CONFIG.aligned)
      throw new H5LogError('UNSUPPORTED', 'the aligned data layout of the original does not keep where the data is');
    if (this.stores.length > 0) return;
    throw new H5LogError(
      'UNSUPPORTED',
      'the data of this file is in subfiles, which can only be found beside a file that is opened by its path',
    );
  }

  /** Writes the shapes of datasets that grew by appending into the structure: once a flush, and not with every append. */
  writeShapes(): void {
    if (this.grown.size === 0) return;
    for (const dataset of this.grown) if (!dataset.deleted) dataset.writeShape(dataset.shape);
    this.grown.clear();
  }

  /** Begins a new stage; what was posted until now is pending as before. Returns the stage of it. */
  setAside(): Stage {
    const { current } = this;
    if (current.isUntouched) return current;
    this.returned.push(current);
    this.current = new Stage();
    return current;
  }

  /** Undoes what resizes since the last commit did to posts. */
  undoResizes(): void {
    for (const part of this.clipped.splice(0).reverse()) part.owner.set(part);
    const fills = new Set(this.fills.splice(0));
    this.returned = this.returned.filter((stage) => !fills.has(stage));
  }

  /** The resizes since the last commit are in the file. */
  forgetResizes(): void {
    for (const { arena } of this.clipped.splice(0)) {
      this.exchange(arena.held, 0);
      arena.release();
    }
    this.fills.length = 0;
    if (this.resized.size === 0) return;
    for (const dataset of this.resized) dataset.validExtent = null;
    this.resized.clear();
  }

  override reference(path: string): number {
    return this.pointers.refer(path);
  }
}
