// How netCDF-4 uses HDF5, as netcdf-c does it: names, types, fill values.

import { type DType, type FullType, fullType } from '../dtype/model.ts';

/** The attributes that netCDF-4 and dimension scales consist of; they are not the user's. */
export const RESERVED: ReadonlySet<string> = new Set([
  'CLASS',
  'NAME',
  'DIMENSION_LIST',
  'REFERENCE_LIST',
  '_Netcdf4Dimid',
  '_Netcdf4Coordinates',
  '_nc3_strict',
  '_NCProperties',
  '_Format',
  '_IsNetcdf4',
  '_SuperblockVersion',
]);

export const DIMENSION_ID = '_Netcdf4Dimid';
export const COORDINATES = '_Netcdf4Coordinates';
export const PROPERTIES = '_NCProperties';
export const STRICT = '_nc3_strict';
/** Of h5log, for _NCProperties; a page has no package.json to read. */
export const VERSION = '0.2.0';
export const FILL_VALUE = '_FillValue';

/** Prefix in the file of a variable that is named like a dimension of its group without being its coordinate. */
export const NO_COORDINATE = '_nc4_non_coord_';

/** NAME of a scale that is a dimension only begins so; the length follows, in ten columns. */
export const NO_VARIABLE = 'This is a netCDF dimension but not a netCDF variable.';

/** The types of netCDF that are not made by users, as CDL names them. */
export type NcType =
  | 'byte'
  | 'ubyte'
  | 'char'
  | 'short'
  | 'ushort'
  | 'int'
  | 'uint'
  | 'int64'
  | 'uint64'
  | 'float'
  | 'double'
  | 'string';

const INTEGERS: Readonly<Record<number, readonly [NcType, NcType]>> = {
  1: ['byte', 'ubyte'],
  2: ['short', 'ushort'],
  4: ['int', 'uint'],
  8: ['int64', 'uint64'],
};

/** The type that netCDF has for a type of HDF5; undefined if it has none. */
export function ncType(dtype: DType): NcType | undefined {
  const type: FullType = fullType(dtype);
  if (type.class === 'integer') return INTEGERS[type.size]?.[type.signed ? 0 : 1];
  if (type.class === 'float') return type.size === 4 ? 'float' : type.size === 8 ? 'double' : undefined;
  if (type.class !== 'string') return undefined;
  return type.variable ? 'string' : 'char';
}

/** What the classic model has. */
export const CLASSIC: ReadonlySet<NcType | undefined> = new Set(['byte', 'char', 'short', 'int', 'float', 'double']);

/** The values of elements that were never written, of variables that do not say otherwise (netcdf.h, NC_FILL_...). */
export const DEFAULT_FILL: Readonly<Record<NcType, number | bigint | string>> = {
  byte: -127,
  ubyte: 255,
  char: '',
  short: -32_767,
  ushort: 65_535,
  int: -2_147_483_647,
  uint: 4_294_967_295,
  int64: -9_223_372_036_854_775_806n,
  uint64: 18_446_744_073_709_551_614n,
  float: Math.fround(9.969209968386869e36),
  double: 9.969209968386869e36,
  string: '',
};
