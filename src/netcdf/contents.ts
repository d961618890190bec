// Reads an HDF5 file as netCDF sees it: dimension scales become dimensions, datasets become variables.

import { Dataset } from '../api/dataset.ts';
import { Group } from '../api/group.ts';
import { handleOf } from '../api/handle.ts';
import type { ObjectNode } from '../hdf5/graph/object-node.ts';
import { COORDINATES, DIMENSION_ID, NO_COORDINATE, NO_VARIABLE } from './conventions.ts';
import { Dimension } from './dimension.ts';

/** A group of the file. */
export interface GroupContents {
  readonly group: Group;
  readonly parent: GroupContents | null;
  /** In the order of their numbers. */
  readonly dimensions: Map<string, Dimension>;
  /** By their names in netCDF, with the dimensions of each. */
  readonly variables: Map<string, { readonly dataset: Dataset; dimensions: readonly Dimension[] }>;
  readonly groups: Map<string, GroupContents>;
}

/** All groups, dimensions and variables of a file. */
export class Contents {
  readonly root: GroupContents;
  /** Numbers of dimensions that the scales have, or none of them. */
  hasIds = true;
  nextId = 0;
  readonly #byId = new Map<number, Dimension>();
  readonly #byScale = new Map<ObjectNode, Dimension>();
  /** Groups, and what told their links from others. */
  readonly #links = new Map<Group, string>();
  readonly #generation: number;

  constructor(file: Group) {
    this.#generation = handleOf(file).session.generation;
    this.root = this.#scan(file);
    this.#nameDimensions(this.root);
  }

  /** Whether the file is still as it was. What this layer makes is added by {@link noticed}. */
  get isCurrent(): boolean {
    if (handleOf(this.root.group).session.generation !== this.#generation) return false;
    for (const [group, links] of this.#links) if (linksOf(group) !== links) return false;
    return true;
  }

  /** The layer has made or removed links of this group itself. */
  noticed(group: Group): void {
    this.#links.set(group, linksOf(group));
  }

  addDimension({ dimensions }: GroupContents, dimension: Dimension): void {
    dimensions.set(dimension.name, dimension);
    this.#byId.set(dimension.id, dimension);
    this.nextId = Math.max(this.nextId, dimension.id + 1);
    if (dimension.scale) this.#byScale.set(handleOf(dimension.scale).node, dimension);
  }

  #scan(file: Group): GroupContents {
    const contents = (group: Group, parent: GroupContents | null): GroupContents => ({
      group,
      parent,
      dimensions: new Map(),
      variables: new Map(),
      groups: new Map(),
    });
    const root = contents(file, null);
    const seen = new Set<ObjectNode>([handleOf(file).node]);
    const scales: { readonly inside: GroupContents; readonly name: string; readonly scale: Dataset }[] = [];
    // Not by recursion: groups may be nested deeper than the stack allows.
    const open = [root];
    for (let inside = open.shift(); inside; inside = open.shift()) {
      for (const [name, object] of inside.group.children()) {
        if (object instanceof Group) {
          const { node } = handleOf(object);
          // Links may lead in circles.
          if (seen.has(node)) continue;
          seen.add(node);
          const below = contents(object, inside);
          inside.groups.set(name, below);
          open.push(below);
        } else if (object instanceof Dataset) {
          const isScale = object.attributes.has('CLASS') && object.attributes.get('CLASS') === 'DIMENSION_SCALE';
          if (isScale && object.rank > 0) scales.push({ inside, name, scale: object });
          if (!isScale || !isOnlyDimension(object))
            inside.variables.set(shownName(name), { dataset: object, dimensions: [] });
        }
      }
      this.noticed(inside.group);
    }
    this.#addScales(scales);
    return root;
  }

  #addScales(scales: readonly { inside: GroupContents; name: string; scale: Dataset }[]): void {
    const ids = scales.map(({ scale }) => numbersIn(scale, DIMENSION_ID)?.[0]);
    this.hasIds = ids.every((id) => id !== undefined);
    let next = Math.max(-1, ...ids.map((id) => id ?? -1)) + 1;
    const taken = new Set<number>();
    const made = scales.map(({ inside, name, scale }, i) => {
      const known = ids[i];
      const id = known === undefined || taken.has(known) ? next++ : known;
      taken.add(id);
      const [length = 0] = scale.shape;
      const unlimited = scale.maxShape[0] === null;
      const dimension = new Dimension(name, id, scale, { length, unlimited, isVariable: !isOnlyDimension(scale) });
      return { inside, dimension };
    });
    made.sort((a, b) => a.dimension.id - b.dimension.id);
    for (const { inside, dimension } of made) this.addDimension(inside, dimension);
  }

  /** Finds the dimensions of the variables, of groups below first, as netcdf-c does it. */
  #nameDimensions(root: GroupContents): void {
    const all = [root];
    for (const { groups } of all) all.push(...groups.values());
    for (const inside of all.reverse()) {
      for (const variable of inside.variables.values()) {
        variable.dimensions = this.#dimensionsOf(variable.dataset, inside);
        variable.dimensions.forEach((dimension, axis) => {
          dimension.uses.push({ dataset: variable.dataset, axis });
        });
      }
    }
  }

  #dimensionsOf(dataset: Dataset, inside: GroupContents): readonly Dimension[] {
    const { rank } = dataset;
    const ids = numbersIn(dataset, COORDINATES);
    const numbered = ids?.length === rank ? ids.flatMap((id) => this.#byId.get(id) ?? []) : [];
    if (rank > 0 && numbered.length === rank) return numbered;
    const own = this.#byScale.get(handleOf(dataset).node);
    const attached = own || !dataset.attributes.has('DIMENSION_LIST') ? [] : dataset.dimensions;
    return Array.from({ length: rank }, (_, axis) => {
      const scale = attached[axis]?.scales.at(-1);
      const found = axis === 0 && own ? own : scale ? this.#byScale.get(handleOf(scale).node) : undefined;
      return found ?? this.#phony(dataset, axis, inside);
    });
  }

  /** A dimension of this length in the group, or one that is made up. */
  #phony({ shape, maxShape }: Dataset, axis: number, inside: GroupContents): Dimension {
    const length = shape[axis] ?? 0;
    const unlimited = maxShape[axis] === null;
    for (const known of inside.dimensions.values())
      if (known.unlimited === unlimited && lengthOf(known) === length) return known;
    const id = this.nextId;
    const made = new Dimension(`phony_dim_${id}`, id, null, { length, unlimited, isVariable: false });
    this.addDimension(inside, made);
    return made;
  }
}

/** Other links, other text: the group counts those that are made, and so those that are removed are known as well. */
function linksOf(group: Group): string {
  const { links, linkOrder } = handleOf(group).node;
  return `${links.size} of ${linkOrder.next}`;
}

function lengthOf(dimension: Dimension): number {
  return dimension.scale ? (dimension.scale.shape[0] ?? 0) : dimension.size;
}

function shownName(name: string): string {
  return name.startsWith(NO_COORDINATE) ? name.slice(NO_COORDINATE.length) : name;
}

/** Whether a scale is no variable. */
function isOnlyDimension({ attributes }: Dataset): boolean {
  const name = attributes.has('NAME') ? attributes.get('NAME') : undefined;
  return typeof name === 'string' && name.startsWith(NO_VARIABLE);
}

function numbersIn({ attributes }: Dataset, name: string): number[] | undefined {
  const value = attributes.has(name) ? attributes.get(name) : undefined;
  if (typeof value === 'number') return [value];
  return value instanceof Int32Array || value instanceof Int16Array ? Array.from(value) : undefined;
}
