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
  /** The user's name of an attribute, or undefined for what is not the user's. */
  shownAttribute(name: string): string | undefined;
}

export const logNames: Names = {
  stored: (name) => (name.startsWith('_') && !name.startsWith(NO_COORDINATE) ? `_${name}` : name),
  shown: (name) =>
    name.startsWith('__') ? name.slice(1) : name.startsWith('_') && !name.startsWith(NO_COORDINATE) ? undefined : name,
  // The original leaves a name undoubled when it was created by a path that begins elsewhere: g/_x.
  shownInside: (name) => (name.startsWith('__') ? name.slice(1) : name),
  storedAttribute: (name, attributes) =>
    SCALE_ATTRIBUTES.has(name) ? storedScaleAttribute(name, attributes) : logNames.stored(name),
  shownAttribute: (name) => (isHidden(name) ? name.slice(1) : logNames.shown(name)),
};

/** The name in the file of an attribute of a dimension scale, or of what it is attached to, whatever the file is. h5log 0.1 stored these names as they are. */
export function storedScaleAttribute(name: string, attributes: ReadonlyMap<string, unknown>): string {
  return attributes.has(ID) && !attributes.has(name) ? `_${name}` : name;
}

function isHidden(name: string): boolean {
  return name.startsWith('_') && SCALE_ATTRIBUTES.has(name.slice(1));
}

/** The name for an attribute of an object that leaves the log; what is not the user's stays as it is. */
export function freedAttribute(name: string): string {
  return isHidden(name) ? name.slice(1) : logNames.shownInside(name);
}

/** Files without a log: every name is what it is. */
export const plainNames: Names = {
  stored: (name) => name,
  shown: (name) => name,
  shownInside: (name) => name,
  storedAttribute: (name) => name,
  shownAttribute: (name) => name,
};
