"""Makes a file in which many routes lead to each object, and says what is seen by each of them: routes.py make|see FILE."""
import json
import sys

import h5py
import numpy as np

RECORD = np.dtype([('a', 'i4'), ('b', 'f8')])


def make(path, libver):
    with h5py.File(path, 'w', libver=libver) as f:
        for axis in 'xyz':
            scale = f.create_dataset('scales/' + axis, data=np.arange(3.0))
            scale.make_scale(axis + ' axis')
        data = f.create_dataset('data', data=np.zeros((3, 3, 3)))
        for i, axis in enumerate('xyz'):
            data.dims[i].attach_scale(f['scales/' + axis])
        data.dims[0].attach_scale(f['scales/z'])
        other = f.create_dataset('other', data=np.zeros(3))
        other.dims[0].attach_scale(f['scales/x'])
        f['alias'] = data
        f['scales/data'] = data
        inner = f.create_group('loop/inner')
        inner['back'] = f['loop']
        f['loop/inner/root'] = f['/']
        f['type'] = RECORD
        f.create_dataset('typed', (2,), f['type'])
        f['scales'].attrs.create('typed', np.zeros(2, RECORD), dtype=f['type'])
        f['loop'].attrs['to data'] = data.ref
        f['loop'].attrs.create('to many', [f['type'].ref, f['scales'].ref, f['/'].ref], dtype=h5py.ref_dtype)
        f['loop'].attrs['region'] = data.regionref[0:2, 1, :]
        nested = np.empty(2, object)
        nested[:] = [np.array([f['other'].ref], h5py.ref_dtype), np.array([f['loop'].ref, f['scales/y'].ref], h5py.ref_dtype)]
        f['other'].attrs.create('lists', nested, dtype=h5py.vlen_dtype(h5py.ref_dtype))


def mark(obj):
    return sorted(name for name in obj.attrs if name.startswith('mark'))


def see(path):
    with h5py.File(path, 'r') as f:
        data, loop = f['data'], f['loop']
        to_type, to_scales, to_root = (f[ref] for ref in loop.attrs['to many'])
        lists = f['other'].attrs['lists']
        region = loop.attrs['region']
        routes = {
            '/': [mark(f), mark(to_root), mark(f['loop/inner/root'])],
            '/data': [mark(data), mark(f['alias']), mark(f['scales/data']), mark(f[loop.attrs['to data']]), mark(f[region]),
                      mark(f[f['scales/y'].attrs['REFERENCE_LIST'][0][0]])],
            '/scales': [mark(f['scales']), mark(to_scales)],
            '/scales/x': [mark(f['scales/x']), mark(data.dims[0][0]), mark(f['other'].dims[0][0])],
            '/scales/y': [mark(f['scales/y']), mark(data.dims[1][0]), mark(f[lists[1][1]])],
            '/scales/z': [mark(f['scales/z']), mark(data.dims[2][0]), mark(data.dims[0][1])],
            '/other': [mark(f['other']), mark(f[lists[0][0]])],
            '/loop': [mark(loop), mark(f['loop/inner/back']), mark(f['loop/inner/back/inner/back']), mark(f[lists[1][0]])],
            '/loop/inner': [mark(f['loop/inner']), mark(f['loop/inner/back/inner'])],
            '/type': [mark(f['type']), mark(to_type)] + [
                mark(h5py.Datatype(t)) for t in (f['typed'].id.get_type(), h5py.h5a.open(f['scales'].id, b'typed').get_type())],
            '/typed': [mark(f['typed'])],
        }
        counts = {name: h5py.h5o.get_info(f[name].id).rc for name in routes}
        both = sorted([mark(f['other']), mark(data)]) == sorted(mark(f[row[0]]) for row in f['scales/x'].attrs['REFERENCE_LIST'])
        selected = list(data.regionref.selection(region))
        return {'routes': routes, 'counts': counts, 'both': both, 'selected': selected, 'dims': [len(d) for d in data.dims]}


if sys.argv[1] == 'make':
    make(sys.argv[2], sys.argv[3])
else:
    print(json.dumps([see(path) for path in sys.argv[2:]]))
