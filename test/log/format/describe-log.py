"""Prints, as JSON, what h5py sees of the log in each of the files named on the command line."""
import json
import sys

import h5py
import numpy as np
from h5py import h5a, h5d, h5o, h5s, h5t

sys.setrecursionlimit(10000)


def stored_size(t):
    """Bytes of an element in the file: libhdf5 tells the size in memory of what has variable length."""
    if isinstance(t, h5py.h5t.TypeVlenID) or (isinstance(t, h5py.h5t.TypeStringID) and t.is_variable_str()):
        return 16
    if isinstance(t, h5py.h5t.TypeArrayID):
        count = 1
        for n in t.get_array_dims():
            count *= n
        return count * stored_size(t.get_super())
    if isinstance(t, h5py.h5t.TypeCompoundID):
        members = [t.get_member_type(i) for i in range(t.get_nmembers())]
        return t.get_size() + sum(stored_size(m) - m.get_size() for m in members)
    return t.get_size()


def attribute(object_id, name):
    a = h5a.open(object_id, name)
    space = a.get_space()
    t = a.get_type()
    kind = 'none'
    for text, known in (('i32', h5t.STD_I32LE), ('i64', h5t.STD_I64LE)):
        if t.equal(known):
            kind = text
    shape = list(space.get_simple_extent_dims()) if space.get_simple_extent_type() == h5s.SIMPLE else None
    value = None
    if kind != 'none' and shape is not None:
        out = np.zeros(shape, a.dtype)
        if out.size:
            a.read(out)
        value = [int(x) for x in out]
    return {'name': name.decode(), 'kind': kind, 'shape': shape, 'value': value}


def names(object_id):
    found = []
    h5a.iterate(object_id, lambda name, *_: found.append(name))
    return found


def fill(d, plist):
    if plist.fill_value_defined() != h5d.FILL_VALUE_USER_DEFINED:
        return ''
    try:
        value = np.zeros(1, d.dtype)
        plist.get_fill_value(value)
        return value.tobytes().hex()
    except Exception:
        return None


def dataset(path, d):
    plist = d.id.get_create_plist()
    space = d.id.get_space()
    kinds = {h5s.NULL: 'null', h5s.SCALAR: 'scalar', h5s.SIMPLE: 'simple'}
    simple = space.get_simple_extent_type() == h5s.SIMPLE
    return {
        'path': path,
        'address': h5o.get_info(d.id).addr,
        'space': kinds[space.get_simple_extent_type()],
        'shape': list(space.get_simple_extent_dims()) if simple else [],
        'maxShape': list(space.get_simple_extent_dims(True)) if simple else [],
        'bits': bool(d.id.get_type().equal(h5t.STD_B8LE)),
        'size': stored_size(d.id.get_type()),
        'contiguous': plist.get_layout() == h5d.CONTIGUOUS,
        'early': plist.get_alloc_time() == h5d.ALLOC_TIME_EARLY,
        'filters': plist.get_nfilters(),
        'offset': d.id.get_offset(),
        'fill': fill(d, plist),
        'attributes': [attribute(d.id, name) for name in names(d.id)],
    }


def describe(path):
    with h5py.File(path, 'r') as f:
        found = []
        seen = set()

        def visit(group, where):
            for name in group:
                link = group.get(name, getlink=True)
                if not isinstance(link, h5py.HardLink):
                    continue
                child = group[name]
                place = where + '/' + name
                if isinstance(child, h5py.Group):
                    key = h5o.get_info(child.id).addr
                    if key not in seen:
                        seen.add(key)
                        visit(child, place)
                elif isinstance(child, h5py.Dataset):
                    found.append(dataset(place, child))
                    # The log as any tool reads it.
                    if place.startswith('/_LOG/') and found[-1]['space'] == 'simple':
                        found[-1]['sum'] = int(np.frombuffer(raw(child), np.uint8).astype(np.uint64).sum())

        visit(f, '')
        root = [attribute(f.id, name) for name in names(f['/'].id)]
        return {'root': root, 'datasets': found, 'links': list(f.keys()), 'log': list(f['_LOG'].keys())}


def raw(d):
    out = np.zeros(d.shape, np.uint8)
    d.id.read(h5s.ALL, h5s.ALL, out, d.id.get_type())
    return out.tobytes()


for path in sys.argv[1:]:
    print(json.dumps(describe(path)))
