import { DERIVED, OWN_ADDRESS } from '../../hdf5/graph/object-node.ts';

/*
 * Names that begin with an underscore are the connector's own; a user's name that does gets one underscore more. The original
 * does so for the first character of a path only; here it holds for every component.
 */

/**
 * Attributes of dimension scales. libnetcdf crashes on a scale without a dataspace, which is what a dataset of a log is to others:
 * there these names have an underscore, too.
 */
const SCALE_ATTRIBUTES: ReadonlySet<string> = new Set(['CLASS', 'NAME', 'DIMENSION_LIST', 'REFERENCE_LIST']);

/** netCDF knows variables by this prefix, which therefore stays as it is. */
const NO_COORDINATE = '_nc4_non_coord_';

/** The attribute with the number of a dataset in the log: only what has it is one. */
export const ID = '_ID';

/**
 * The number by which logged data refers to an object, and on the root how many were ever given. Objects move, and keep their numbers. The
 * header that an object had before it moved stays in the file, with its number: so addresses that were published tell their objects. But an
 * object may have had no number then, and another program may change parts that old and new header share: behind the number are the
 * addresses that published layouts have of the object and that it has left, and the root says that there are some.
 */
export const NUMBER = '_number';
export const NUMBERS = '_numbers';

/** Marks a published dataset, and says which part of the log its ordinary layout has. */
export const VIEW = DERIVED;

/** Tells a person where the data is that other programs do not show. */
export const NOTE = '_note';

/** Attributes that are never the user's, whatever object has them. */
const OWN_ATTRIBUTES: ReadonlySet<string> = new Set([
  '_dims',
  '_mdims',
  ID,
  '_chunks',
  '_filters',
  '_reach',
  '_token',
  VIEW,
  NOTE,
  '_int_att',
  '_publish',
  '_log',
  '_logs',
  '_address',
  NUMBER,
  NUMBERS,
  OWN_ADDRESS,
]);

/** How names appear to users. */
export interface Names {
  /** The name in the file for a user's name. */
  stored(name: string): string;
  /** The user's name for one in the file, or undefined for what is not the user's. */
  shown(name: string): string | undefined;
  /** The same for a link of a group other than the root, where nothing is the connector's own. */
  shownInside(name: string): string;
  /** The name in the file of an attribute of an object that has these attributes. */
  storedAttribute(name: string, attributes: ReadonlyMap<string, unknown>): string;
  /** The user's name of an attribute, or undefined for what is not the user's. Two may have the same: see {@link isAlias}. */
  shownAttribute(name: string): string | undefined;
}

export const logNames: Names = {
  stored: (name) => (name.startsWith('_') && !name.startsWith(NO_COORDINATE) ? `_${name}` : name),
  shown: (name) =>
    name.startsWith('__') ? name.slice(1) : name.startsWith('_') && !name.startsWith(NO_COORDINATE) ? undefined : name,
  // The original leaves a name undoubled when it was created by a path that begins elsewhere: g/_x.
  shownInside: (name) => (name.startsWith('__') ? name.slice(1) : name),
  storedAttribute(name, attributes) {
    if (SCALE_ATTRIBUTES.has(name)) return storedScaleAttribute(name, attributes);
    // Where others see the file, they may have changed the name that they know.
    return isAlias(name) && attributes.has(name) ? name : logNames.stored(name);
  },
  shownAttribute(name) {
    if (isHidden(name) || name.startsWith('__')) return name.slice(1);
    return name.startsWith('_') && !isAlias(name) ? undefined : name;
  },
};

/**
 * Whether a user's attribute has this name for other programs as well, in a file that was published: `_FillValue` of netCDF, for example.
 * A name with two underscores has not: it is how another name is stored.
 */
export function isAlias(name: string): boolean {
  return /^_(?!_)/.test(name) && !OWN_ATTRIBUTES.has(name) && !isHidden(name);
}

/** The names of attributes of dimension scales that are hidden as long as a dataset has no dataspace. */
export const HIDDEN_ATTRIBUTES: readonly string[] = [...SCALE_ATTRIBUTES].map((name) => `_${name}`);

/** The name in the file of an attribute of a dimension scale, or of what it is attached to, whatever the file is. h5log 0.1 stored these names as they are. */
export function storedScaleAttribute(name: string, attributes: ReadonlyMap<string, unknown>): string {
  return attributes.has(ID) && !attributes.has(VIEW) && !attributes.has(name) ? `_${name}` : name;
}

function isHidden(name: string): boolean {
  return name.startsWith('_') && SCALE_ATTRIBUTES.has(name.slice(1));
}

/** The name for an attribute of an object that leaves the log; what is not the user's stays as it is. */
export function freedAttribute(name: string): string {
  return isHidden(name) ? name.slice(1) : logNames.shownInside(name);
}

/** Stored names in an order in which each of them can lose its underscore before another one gets the name that it had. */
export function shortestFirst(stored: Iterable<string>): string[] {
  return [...stored].sort((a, b) => a.length - b.length);
}

/** Files without a log: every name is what it is. */
export const plainNames: Names = {
  stored: (name) => name,
  shown: (name) => name,
  shownInside: (name) => name,
  storedAttribute: (name) => name,
  shownAttribute: (name) => name,
};
