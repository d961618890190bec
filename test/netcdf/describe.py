"""Describes netCDF files, as netCDF4-python and xarray with both engines see them, for tests. Arguments: files; prints one JSON."""
import json
import sys

import h5py
import netCDF4
import numpy as np
import xarray


def plain(value):
    if isinstance(value, bytes):
        return value.decode('utf-8')
    if isinstance(value, np.ndarray):
        values = [plain(item) for item in value.ravel().tolist()]
        if value.dtype.kind in 'iu' and value.dtype.itemsize == 8:
            values = [str(item) for item in values]
        return values
    if isinstance(value, np.generic):
        text = isinstance(value, (np.int64, np.uint64))
        return str(value) if text else plain(value.item())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


# What a published log has besides: see docs/format.md.
LOG = '_LOG'
OWN = {
    '_int_att', '_token', '_publish', '_numbers', '_number', '_dims', '_mdims', '_ID', '_chunks', '_filters', '_reach', '_at', '_view', '_note',
}


def of_user(attributes):
    return {key: plain(value) for key, value in attributes if key not in OWN and not key.startswith('__')}


def kind(dtype):
    if dtype == str:
        return 'string'
    dtype = np.dtype(dtype)
    return 'string' if dtype.kind == 'O' else 'char' if dtype.kind == 'S' else dtype.name


def by_netcdf4(group):
    variables = {}
    for name, v in group.variables.items():
        v.set_auto_maskandscale(False)
        v.set_auto_chartostring(False)
        v.set_always_mask(False)
        values = v[...]
        attributes = of_user((key, v.getncattr(key)) for key in v.ncattrs())
        variables[name] = {
            'dimensions': list(v.dimensions),
            'shape': list(v.shape),
            'type': kind(v.dtype),
            'values': plain(np.asarray(values)),
            'attributes': attributes,
        }
    return {
        'dimensions': {name: [len(d), d.isunlimited()] for name, d in group.dimensions.items()},
        'variables': variables,
        'attributes': of_user((key, group.getncattr(key)) for key in group.ncattrs()),
        'groups': {name: by_netcdf4(inner) for name, inner in group.groups.items() if name != LOG},
    }


def by_xarray(path, engine, like, group='/'):
    with xarray.open_dataset(path, engine=engine, group=group, decode_cf=False, cache=False) as d:
        variables = {}
        for name, v in d.variables.items():
            values = np.asarray(v.values)
            variables[name] = {
                'dimensions': list(v.dims),
                'shape': list(v.shape),
                'type': kind(v.dtype),
                'values': plain(values),
                'attributes': of_user(v.attrs.items()),
            }
        found = {
            'variables': variables,
            'attributes': of_user(d.attrs.items()),
            'unlimited': sorted(d.encoding.get('unlimited_dims', [])),
        }
    found['groups'] = {
        name: by_xarray(path, engine, inner, f'{group.rstrip("/")}/{name}') for name, inner in like['groups'].items()
    }
    return found


def by_h5py(group, like, problems):
    """What netCDF4 says, as far as h5py sees it: raw data inside the padded one, the scales of every dimension."""
    for name, v in like['variables'].items():
        stored = name if name in group and not (name in like['dimensions'] and v['dimensions'][:1] != [name]) else '_nc4_non_coord_' + name
        d = group[stored]
        padded = np.array(v['values'], dtype=object).reshape(v['shape'])
        part = padded[tuple(slice(0, n) for n in d.shape)]
        own = np.array(plain(np.asarray(d[...])) if d.shape else [plain(d[()])], dtype=object).reshape(d.shape)
        if not np.array_equal(part, own):
            problems.append(f'{d.name}: values {own} are not {part}')
        scale = h5py.h5ds.is_scale(d.id)
        names = [[s.name.split('/')[-1] for s in dim.values()] for dim in d.dims]
        wanted = [[] for _ in d.shape] if scale else [[n] for n in v['dimensions']]
        if names != wanted:
            problems.append(f'{d.name}: scales {names} are not {wanted}')
        for i, dim in enumerate(d.dims):
            for s in dim.values():
                if not h5py.h5ds.is_attached(d.id, s.id, i):
                    problems.append(f'{s.name} does not know that it is attached to {d.name}')
    for name, inner in like['groups'].items():
        by_h5py(group[name], inner, problems)


result = {}
for path in sys.argv[1:]:
    with netCDF4.Dataset(path) as d:
        said = by_netcdf4(d)
    problems = []
    with h5py.File(path, 'r') as f:
        by_h5py(f, said, problems)
    result[path] = {
        'netCDF4': said,
        'netcdf4': by_xarray(path, 'netcdf4', said),
        'h5netcdf': by_xarray(path, 'h5netcdf', said),
        'h5py': problems,
    }
json.dump(result, sys.stdout)
