"""Prints, as JSON, everything that h5py sees in the files named on the command line: one description a file."""
import json
import struct
import sys

import h5py
import numpy as np
from h5py import h5a, h5d, h5g, h5l, h5o, h5r, h5s, h5t

ORDERS = {h5t.ORDER_LE: 'little', h5t.ORDER_BE: 'big', h5t.ORDER_NONE: 'little'}
PADS = {h5t.STR_NULLTERM: 'zero', h5t.STR_NULLPAD: 'null', h5t.STR_SPACEPAD: 'space'}


def text(name):
    return name.decode('utf8', 'surrogateescape') if isinstance(name, bytes) else name


def holds_variable(t):
    kind = t.get_class()
    if kind == h5t.STRING:
        return t.is_variable_str()
    if kind == h5t.COMPOUND:
        return any(holds_variable(t.get_member_type(i)) for i in range(t.get_nmembers()))
    return kind == h5t.ARRAY and holds_variable(t.get_super())


def holds_exact(t):
    """libhdf5 converts neither bit fields to integers nor opaque data of one tag to another."""
    kind = t.get_class()
    if kind == h5t.COMPOUND:
        return any(holds_exact(t.get_member_type(i)) for i in range(t.get_nmembers()))
    return holds_exact(t.get_super()) if kind == h5t.ARRAY else kind in (h5t.BITFIELD, h5t.OPAQUE)


def type_of(t):
    kind = t.get_class()
    if kind == h5t.INTEGER:
        return ['integer', t.get_size(), ORDERS[t.get_order()] if t.get_size() > 1 else 'little', t.get_sign() == h5t.SGN_2, t.get_precision(), t.get_offset()]
    if kind == h5t.FLOAT:
        return ['float', t.get_size(), ORDERS[t.get_order()], t.get_precision(), *t.get_fields(), t.get_ebias()]
    if kind == h5t.STRING:
        size = 'variable' if t.is_variable_str() else t.get_size()
        return ['string', size, PADS[t.get_strpad()], 'utf8' if t.get_cset() == h5t.CSET_UTF8 else 'ascii']
    if kind == h5t.BITFIELD:
        return ['bitfield', t.get_size()]
    if kind == h5t.OPAQUE:
        return ['opaque', t.get_size(), text(t.get_tag())]
    if kind == h5t.COMPOUND:
        # libhdf5 says 8 for the size of a variable-length string (a pointer), not the 16 bytes it has in the file.
        known = not holds_variable(t)
        members = range(t.get_nmembers())
        fields = [[text(t.get_member_name(i)), t.get_member_offset(i) if known else -1, type_of(t.get_member_type(i))] for i in members]
        return ['compound', t.get_size() if known else -1, fields]
    if kind == h5t.REFERENCE:
        return ['reference', 'object' if t.equal(h5t.STD_REF_OBJ) else 'region']
    if kind == h5t.ENUM:
        members = [[text(t.get_member_name(i)), str(t.get_member_value(i))] for i in range(t.get_nmembers())]
        return ['enum', type_of(t.get_super()), members]
    if kind == h5t.VLEN:
        return ['vlen', type_of(t.get_super())]
    if kind == h5t.ARRAY:
        return ['array', list(t.get_array_dims()), type_of(t.get_super())]
    raise ValueError('type class %d' % kind)


def number(value):
    """Floats by their bits as float64 (any NaN is NaN), integers as decimal text."""
    if isinstance(value, (float, np.floating)):
        value = float(value)
        return 'NaN' if value != value else struct.pack('>d', value).hex()
    return str(int(value))


def plain(value, t):
    """One element, said in the same words as describe.ts says it."""
    kind = t.get_class()
    if kind in (h5t.INTEGER, h5t.FLOAT, h5t.BITFIELD, h5t.ENUM):
        return number(value)
    if kind == h5t.STRING:
        raw = value if isinstance(value, bytes) else str(value).encode('utf8', 'surrogateescape')
        if not t.is_variable_str() and t.get_strpad() == h5t.STR_SPACEPAD:
            raw = raw.rstrip(b' ')
        elif not t.is_variable_str():
            raw = raw.split(b'\0')[0] if t.get_strpad() == h5t.STR_NULLTERM else raw.rstrip(b'\0')
        return text(raw)
    if kind == h5t.OPAQUE:
        return value.tobytes().hex() if hasattr(value, 'tobytes') else bytes(value).hex()
    if kind == h5t.COMPOUND:
        return [[text(t.get_member_name(i)), plain(value[text(t.get_member_name(i))], t.get_member_type(i))] for i in range(t.get_nmembers())]
    if kind == h5t.REFERENCE:
        return paths.get(h5o.get_info(h5r.dereference(value, current.id)).addr, '') if value else ''
    if kind == h5t.VLEN:
        return [] if value is None or isinstance(value, int) else [plain(item, t.get_super()) for item in value]
    if kind == h5t.ARRAY:
        return [plain(item, t.get_super()) for item in elements(np.asarray(value), t.get_array_dims())]
    raise ValueError('type class %d' % kind)


def elements(array, shape):
    """Row-major elements of the outer shape; what is inside an element stays together."""
    return list(array.reshape((-1,) + array.shape[len(shape):]))


def contents(source, space, t):
    kind = space.get_simple_extent_type()
    if kind == h5s.NULL:
        return None, []
    shape = list(space.get_simple_extent_dims()) if kind == h5s.SIMPLE else []
    count = int(np.prod(shape)) if shape else 1
    if count == 0:
        return shape, []
    dtype = t.dtype
    base, inner = (dtype.subdtype if dtype.subdtype else (dtype, ()))
    # An array of numpy has fewer dimensions than a dataset of arrays may have.
    memory = shape if len(shape) + len(inner) <= 32 else [count]
    out = np.empty(tuple(memory) + tuple(inner), base)
    source(out, t if holds_exact(t) else h5t.py_create(dtype))
    return shape, [plain(item, t) for item in elements(out, memory)]


def attributes(obj):
    found = []
    for name in obj.attrs:
        a = h5a.open(obj.id, name.encode('utf8', 'surrogateescape'))
        t = a.get_type()
        shape, values = contents(lambda out, memory: a.read(out, memory), a.get_space(), t)
        found.append([name, type_of(t), shape, values])
    return found


def dataset(d, with_data):
    t, space = d.id.get_type(), d.id.get_space()
    kind = space.get_simple_extent_type()
    top = [None if n == h5s.UNLIMITED else n for n in space.get_simple_extent_dims(True)] if kind == h5s.SIMPLE else None
    plist = d.id.get_create_plist()
    chunked = plist.get_layout() == h5d.CHUNKED
    filters = [plist.get_filter(i)[0] for i in range(plist.get_nfilters())]
    shape = list(space.get_simple_extent_dims()) if kind == h5s.SIMPLE else (None if kind == h5s.NULL else [])
    values = contents(lambda out, memory: d.id.read(h5s.ALL, h5s.ALL, out, memory), space, t)[1] if with_data else None
    return {'type': type_of(t), 'shape': shape, 'max': top, 'chunk': list(plist.get_chunk()) if chunked else None, 'filters': filters, 'values': values}


def link(group, name):
    found = group.get(name, getlink=True)
    if isinstance(found, h5py.SoftLink):
        return ['soft', found.path]
    if isinstance(found, h5py.ExternalLink):
        return ['external', found.filename, found.path]
    return ['hard']


def describe(path, with_data):
    global current, paths
    objects, paths, made_of = {}, {}, []
    with h5py.File(path, 'r') as f:
        current = f
        todo = [('/', f['/'])]
        for where, obj in todo:
            info = h5o.get_info(obj.id)
            if info.addr in paths:
                objects[where] = {'same': paths[info.addr]}
                continue
            paths[info.addr] = where
            made = objects[where] = {'count': info.rc}
            made_of.append((made, obj))
            if isinstance(obj, h5py.Group):
                made['links'] = [[name, *link(obj, name)] for name in obj]
                for name, kind, *_ in made['links']:
                    if kind == 'hard':
                        todo.append((where.rstrip('/') + '/' + name, obj[name]))
        # The values last: only now every reference can be told by the path it leads to.
        for made, obj in made_of:
            made['attributes'] = attributes(obj)
            if isinstance(obj, h5py.Group):
                made['kind'] = 'group'
            elif isinstance(obj, h5py.Dataset):
                made['kind'] = 'dataset'
                made['dataset'] = dataset(obj, with_data)
            else:
                made['kind'] = 'datatype'
                made['type'] = type_of(obj.id)
    return objects


if __name__ == '__main__':
    with_data = sys.argv[1] == 'data'
    json.dump([describe(path, with_data) for path in sys.argv[2:]], sys.stdout)
