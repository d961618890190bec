/** The entry point `h5log/netcdf`: the data model of netCDF-4, dimensions, variables and attributes, on top of a file. */
export { type NcDimension, type NcGroup, type NcVariable, netcdf } from './netcdf/group.ts';
