"""Makes regular files of every kind that the native connector is tested with: make.py FOLDER."""
import ctypes
import os
import sys

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t

folder = sys.argv[1]
maps = open('/proc/self/maps').read().split()
hdf5 = ctypes.CDLL(next(word for word in maps if 'libhdf5' in word and '_hl' not in word))


def new(name, **options):
    return h5py.File(os.path.join(folder, name), 'w', **options)


def raw(group, name, t, values, shape=None):
    """A dataset of a type that h5py has no dtype for, written in that very type."""
    shape = values.shape if shape is None else shape
    d = h5d.create(group.id, name.encode(), t, h5s.create_simple(shape))
    d.write(h5s.ALL, h5s.ALL, values, t)


def numbers(f):
    for code in ['i1', 'u1', 'i2', 'u2', 'i4', 'u4', 'i8', 'u8', 'f2', 'f4', 'f8']:
        for order in '<>':
            dtype = np.dtype(order + code)
            if dtype.kind == 'f':
                values = np.array([0, -0.0, -1.5, np.inf, np.nan, 2.0 ** -14], dtype)
            else:
                limits = np.iinfo(dtype)
                values = np.array([0, 1, limits.min, limits.max, 5, 6], dtype)
            f[order + code] = values.reshape(2, 3)
    f['bool'] = np.array([[True, False], [False, True]])
    for name, base in (('enum', '<i2'), ('big enum', '>i2'), ('enum 8', '<u8'), ('big enum 8', '>i8')):
        t = h5py.enum_dtype({'A': 1, 'B': 2, 'C': 300}, basetype=base)
        raw(f, name, h5t.py_create(t, logical=True), np.array([1, 300, 2, 7], base))
    f['long double'] = np.array([0, 1.5, -2.25], np.longdouble)
    for size in (1, 2, 4, 8):
        for order, word in (('<', 'LE'), ('>', 'BE')):
            t = getattr(h5t, 'STD_B%d%s' % (size * 8, word))
            raw(f, 'bits %d %s' % (size, word), t, np.array([1, 200, 77], '%su%d' % (order, size)))
    f['opaque'] = np.array([b'\x00\x01\x02', b'\xff\xfe\x00'], 'V3')
    f['times'] = np.arange(3).astype('M8[s]').astype(h5py.opaque_dtype(np.dtype('M8[s]')))
    for precision, word in ((20, 'twenty bits'), (11, 'eleven bits')):
        narrow = h5t.NATIVE_INT32.copy()
        narrow.set_precision(precision)
        narrow.set_offset(3)
        raw(f, word, narrow, np.array([8, 16, -8 & ((1 << (precision + 3)) - 1)], 'i4'))


def compounds(f):
    plain = np.dtype([('a', '<i2'), ('b', '<f8'), ('c', 'u1')])
    f['plain'] = np.array([(1, 2.5, 3), (-4, 5.5, 6)], plain)
    big = np.dtype([('a', '>i2'), ('b', '>f8')])
    f['all big'] = np.array([(1, 2.5), (-4, 5.5)], big)
    f['mixed'] = np.array([(1, 2.5, 7), (-4, 5.5, 8)], np.dtype([('a', '>i2'), ('b', '<f8'), ('c', 'u1')]))
    nested = np.dtype([('in', big), ('list', '>i4', (2, 3)), ('name', 'S5')])
    values = np.zeros(3, nested)
    values['in']['a'], values['in']['b'], values['list'], values['name'] = [1, 2, 3], 0.25, np.arange(6).reshape(2, 3), b'abc'
    f['nested'] = values
    gaps = np.dtype({'names': ['late', 'early'], 'formats': ['u1', '>f4'], 'offsets': [20, 3], 'itemsize': 29})
    values = np.zeros(4, gaps)
    values['late'], values['early'] = np.arange(4), np.arange(4) / 4
    f['gaps'] = values
    f['array'] = np.arange(12).reshape(2, 6).view(np.dtype([('x', '<i8', (2, 3))]))
    t = h5t.array_create(h5t.STD_I32BE, (2, 3))
    raw(f, 'big array', t, np.arange(24, dtype='>i4').reshape(4, 2, 3), (4,))
    colour = h5py.enum_dtype({'RED': 1, 'BLUE': 2}, basetype='<i2')
    f['with enum'] = np.array([(1, 5), (2, 6)], np.dtype([('c', colour), ('n', '<i4')]))
    f['with bool'] = np.array([(True, 5), (False, 6)], np.dtype([('c', '?'), ('n', '<i4')]))


def texts(f):
    f.create_dataset('variable', data=['a', '', 'Grüße', '日本 😀'], dtype=h5py.string_dtype())
    f.create_dataset('ascii', data=['x', 'yy'], dtype=h5py.string_dtype('ascii'))
    f.create_dataset('never written', (3,), dtype=h5py.string_dtype())
    f['fixed'] = np.array([[b'', b'a'], [b'bc', b'defgh']])
    f.create_dataset('utf8 of 8', data=['äöü'.encode(), b'abc'], dtype=h5py.string_dtype('utf-8', 8))
    for pad, word in ((h5t.STR_NULLTERM, 'zero'), (h5t.STR_SPACEPAD, 'space')):
        t = h5t.C_S1.copy()
        t.set_size(8)
        t.set_strpad(pad)
        raw(f, word, t, np.array([b'four    ' if word == 'space' else b'four', b'eightish'], 'S8'))


def vlens(f):
    def lists(dtype, *values):
        made = np.empty(len(values), object)
        made[:] = [np.array(v, dtype) for v in values]
        return made
    for code in ('<i4', '>i4', '<f8', 'u1', '<f2'):
        f.create_dataset(code, data=lists(code, [1, 2], [], [5, 6, 7]), dtype=h5py.vlen_dtype(np.dtype(code)))
    f.create_dataset('unwritten', (2,), dtype=h5py.vlen_dtype('f4'))
    record = np.dtype([('id', '<u2'), ('text', h5py.string_dtype()), ('list', h5py.vlen_dtype('f4')), ('big', '>i4')])
    values = np.empty(3, record)
    for i, (text, numbers) in enumerate([('one', [1.5]), ('', []), ('three ä', [3, 3.5, 4])]):
        values[i] = (i, text, np.array(numbers, 'f4'), i * 1000)
    f.create_dataset('in record', data=values)
    f.create_dataset('in chunked record', data=values, chunks=(2,), maxshape=(None,))
    t = h5t.vlen_create(h5t.vlen_create(h5t.NATIVE_INT32))
    class Hvl(ctypes.Structure):
        _fields_ = [('n', ctypes.c_size_t), ('p', ctypes.c_void_p)]
    deep = [[[1, 2], [3]], [], [[4, 5, 6]]]
    keep, rows = [], (Hvl * 3)()
    for i, row in enumerate(deep):
        inner = (Hvl * max(1, len(row)))()
        for k, items in enumerate(row):
            block = (ctypes.c_int32 * len(items))(*items)
            keep.append(block)
            inner[k] = Hvl(len(items), ctypes.addressof(block))
        keep.append(inner)
        rows[i] = Hvl(len(row), ctypes.addressof(inner))
    d = h5d.create(f.id, b'of vlen', t, h5s.create_simple((3,)))
    hdf5.H5Dwrite.argtypes = [ctypes.c_int64] * 5 + [ctypes.c_void_p]
    if hdf5.H5Dwrite(d.id, t.id, 0, 0, 0, ctypes.addressof(rows)) < 0:
        raise OSError('vlen of vlen')


def references(f):
    g = f.create_group('group')
    g['data'] = np.arange(20).reshape(4, 5)
    f.create_dataset('objects', data=np.array([f['group'].ref, g['data'].ref, f['/'].ref], h5py.ref_dtype), dtype=h5py.ref_dtype)
    d = f.create_dataset('some null', (3,), dtype=h5py.ref_dtype)
    d[1] = g['data'].ref
    regions = f.create_dataset('regions', (2,), dtype=h5py.regionref_dtype)
    regions[0] = g['data'].regionref[1:3, 2]
    record = np.dtype([('to', h5py.ref_dtype), ('n', '<i4')])
    values = np.empty(2, record)
    values[0], values[1] = (g.ref, 5), (g['data'].ref, 6)
    f.create_dataset('in record', data=values)
    lists = f.create_dataset('lists', (2,), dtype=h5py.vlen_dtype(h5py.ref_dtype))
    lists[0] = np.array([g.ref, f.ref], h5py.ref_dtype)


def layouts(f):
    data = np.arange(600.0).reshape(20, 30)
    f['contiguous'] = data
    f.create_dataset('chunked', data=data, chunks=(7, 8))
    f.create_dataset('growing', data=data, chunks=(7, 8), maxshape=(None, 30))
    f.create_dataset('growing both', data=data, chunks=(7, 8), maxshape=(None, None))
    f.create_dataset('half written', (40, 30), 'f8', chunks=(7, 8), fillvalue=-1)[3:9, 4:] = 5
    f.create_dataset('unwritten', (3, 4), 'f4', fillvalue=-2.5)
    f.create_dataset('scalar', data=3.5)
    f.create_dataset('scalar text', data='text', dtype=h5py.string_dtype())
    f.create_dataset('null', data=h5py.Empty('i4'))
    f.create_dataset('empty', (0, 4), 'f4')
    f.create_dataset('growing empty', (0, 4), 'f4', maxshape=(None, 4))
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_layout(h5d.COMPACT)
    compact = h5d.create(f.id, b'compact', h5t.STD_I32BE, h5s.create_simple((3,)), plist)
    compact.write(h5s.ALL, h5s.ALL, np.arange(3, dtype='i4'))
    f['type'] = np.dtype([('a', '<i2'), ('b', '>f4')])
    f.create_dataset('of committed type', data=np.ones(2, f['type'].dtype), dtype=f['type'])
    with open(os.path.join(folder, 'outside.bin'), 'wb') as out:
        out.write(np.arange(4.0).tobytes())
    f.create_dataset('outside', (4,), 'f8', external=[(os.path.join(folder, 'outside.bin'), 0, 32)])
    f.create_dataset('five', data=np.arange(2 * 3 * 4 * 5 * 6, dtype='i2').reshape(2, 3, 4, 5, 6), chunks=(1, 2, 3, 4, 5))


def filters(f):
    data = np.arange(1000, dtype='i4').reshape(20, 50)
    options = {
        'gzip': dict(compression='gzip', compression_opts=7),
        'shuffle': dict(shuffle=True),
        'fletcher32': dict(fletcher32=True),
        'all three': dict(compression='gzip', shuffle=True, fletcher32=True),
        'szip': dict(compression='szip'),
        'szip ec': dict(compression='szip', compression_opts=('ec', 8)),
        'scaleoffset': dict(scaleoffset=0),
    }
    for name, filter in options.items():
        f.create_dataset(name, data=data, chunks=(7, 11), **filter)
    f.create_dataset('scaled floats', data=data / 8, chunks=(7, 11), scaleoffset=3)
    nbit = h5t.STD_I32LE.copy()
    nbit.set_precision(20)
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_chunk((7, 11))
    plist.set_filter(5, 0, ())
    d = h5d.create(f.id, b'nbit', nbit, h5s.create_simple((20, 50)), plist)
    d.write(h5s.ALL, h5s.ALL, data)
    f.create_dataset('records', data=np.ones(30, np.dtype([('a', '>i2'), ('b', '<f8')])), chunks=(7,), compression='gzip', shuffle=True)
    f.create_dataset('texts', data=['t%d' % i for i in range(30)], chunks=(7,), compression='gzip', dtype=h5py.string_dtype())


def lacking(f):
    data = np.arange(1000, dtype='i4') // 100  # whatever does not get smaller, h5py stores without the filter
    f.create_dataset('lzf', data=data, chunks=(100,), compression='lzf')
    f.create_dataset('lzf shuffled', data=data, chunks=(100,), compression='lzf', shuffle=True)
    f.create_dataset('lzf of noise', data=np.random.default_rng(1).integers(0, 2 ** 31, 1000, 'i4'), chunks=(100,), compression='lzf')
    f.create_dataset('lzf empty', (100,), 'i4', chunks=(10,), compression='lzf', fillvalue=7)


def elsewhere(f):
    f['here'] = np.arange(3)
    f.create_group('g')['deep'] = np.arange(4)
    f['soft'] = h5py.SoftLink('/g/deep')
    f['g/relative'] = h5py.SoftLink('deep')
    f['dangling'] = h5py.SoftLink('/nothing')
    f['circle'] = h5py.SoftLink('/circle')
    f['out'] = h5py.ExternalLink('layouts.h5', '/chunked')
    f['out group'] = h5py.ExternalLink('layouts.h5', '/')
    f['out absolute'] = h5py.ExternalLink(os.path.join(folder, 'layouts.h5'), 'contiguous')
    f['out nowhere'] = h5py.ExternalLink('not-there.h5', '/x')
    f['out no object'] = h5py.ExternalLink('layouts.h5', '/not-there')
    f['soft out'] = h5py.SoftLink('/out group/growing')
    f['out and back'] = h5py.ExternalLink('links.h5', '/soft out')
    f['out circle'] = h5py.ExternalLink('links.h5', '/out circle')


def virtual(f):
    layout = h5py.VirtualLayout((20, 60), 'f8')
    layout[:, :30] = h5py.VirtualSource('layouts.h5', 'contiguous', (20, 30))
    layout[:, 30:] = h5py.VirtualSource('layouts.h5', 'chunked', (20, 30))
    f.create_virtual_dataset('two files', layout)
    layout = h5py.VirtualLayout((20, 60), 'f8')
    layout[:, :30] = h5py.VirtualSource('layouts.h5', 'contiguous', (20, 30))
    layout[:, 30:] = h5py.VirtualSource('not-there.h5', 'x', (20, 30))
    f.create_virtual_dataset('half missing', layout, fillvalue=-9)
    f['own'] = np.arange(10.0)
    layout = h5py.VirtualLayout((5,), 'f8')
    layout[:] = h5py.VirtualSource('.', 'own', (10,))[::2]
    f.create_virtual_dataset('same file', layout)
    layout = h5py.VirtualLayout((1000,), 'i4')
    layout[:] = h5py.VirtualSource('lacking.h5', 'lzf', (1000,))
    f.create_virtual_dataset('of lzf', layout)


def enumerated(f):
    """Big-endian data with enumerations in it, which h5wasm mixes up, and the neighbours that it does not."""
    colour = h5t.enum_create(h5t.STD_I16BE)
    little = h5t.enum_create(h5t.STD_I16LE)
    for t, order in ((colour, '>'), (little, '<')):
        for i, name in enumerate((b'RED', b'GREEN', b'BLUE')):
            t.enum_insert(name, i + 1)
    record = h5t.create(h5t.COMPOUND, 6)
    record.insert(b'n', 0, h5t.STD_I32BE)
    record.insert(b'c', 4, colour)
    values = np.array([(5, 1), (6, 3)], np.dtype([('n', '>i4'), ('c', '>i2')]))
    raw(f, 'in a big record', record, values)
    raw(f, 'in an array', h5t.array_create(colour, (2,)), np.array([[1, 2], [3, 1]], '>i2'), (2,))
    mixed = h5t.create(h5t.COMPOUND, 6)
    mixed.insert(b'n', 0, h5t.STD_I32LE)
    mixed.insert(b'c', 4, colour)
    raw(f, 'in a mixed record', mixed, np.array([(5, 1), (6, 3)], np.dtype([('n', '<i4'), ('c', '>i2')])))
    raw(f, 'in a little array', h5t.array_create(little, (2,)), np.array([[1, 2], [3, 1]], '<i2'), (2,))
    for order, byte in (('BE', h5t.STD_I8BE), ('LE', h5t.STD_I8LE)):
        t = h5t.create(h5t.COMPOUND, 5)
        t.insert(b'n', 0, h5t.STD_I32BE)
        t.insert(b'b', 4, byte)
        raw(f, 'with a byte ' + order, t, np.array([(5, 1), (6, -3)], np.dtype([('n', '>i4'), ('b', 'i1')])))
    f['complex'] = np.array([1 + 2j, -3.5j])
    values = np.empty(2, np.dtype([('n', '>i4'), ('list', h5py.vlen_dtype(np.dtype('>f8')))]))
    values[0], values[1] = (7, np.array([1.5, 2.5], '>f8')), (8, np.array([], '>f8'))
    f.create_dataset('big sequences in a big record', data=values)


def unlimited(f):
    """A virtual dataset that is as long as its source, whatever its header says."""
    with new('grows.h5', libver='latest') as source:
        d = source.create_dataset('d', data=np.arange(4.0), maxshape=(None,), chunks=(2,))
        plist = h5p.create(h5p.DATASET_CREATE)
        target, unlimited_source = h5s.create_simple((4,), (h5s.UNLIMITED,)), h5s.create_simple((4,), (h5s.UNLIMITED,))
        target.select_hyperslab((0,), (h5s.UNLIMITED,), (1,), (1,))
        unlimited_source.select_hyperslab((0,), (h5s.UNLIMITED,), (1,), (1,))
        plist.set_virtual(target, b'grows.h5', b'd', unlimited_source)
        h5d.create(f.id, b'v', h5t.NATIVE_DOUBLE, h5s.create_simple((4,), (h5s.UNLIMITED,)), plist)
        d.resize((7,))
        d[4:] = [40, 50, 60]


made = {'numbers': numbers, 'compounds': compounds, 'texts': texts, 'vlens': vlens, 'references': references, 'layouts': layouts, 'filters': filters, 'lacking': lacking}
for name, fill in made.items():
    with new(name + '.h5') as f:
        fill(f)
    with new(name + '-latest.h5', libver='latest') as f:
        fill(f)
    with new(name + '-block.h5', userblock_size=512) as f:
        fill(f)
for name, fill in {'links': elsewhere, 'virtual': virtual, 'enumerated': enumerated, 'unlimited': unlimited}.items():
    with new(name + '.h5', libver='latest') as f:
        fill(f)
with new('sparse.h5') as f:
    space = h5s.create_simple((2 ** 27,))
    d = f.create_dataset('wide', (2 ** 27,), 'f8')
    d[5] = 1
    d[2 ** 27 - 3] = 2
    c = f.create_dataset('chunks', (2 ** 14, 2 ** 13), 'f8', chunks=(64, 64), fillvalue=4)
    c[2 ** 14 - 1, 7] = 3
with new('damaged.h5') as f:
    d = f.create_dataset('sum', data=np.arange(1000.0), chunks=(100,), fletcher32=True)
    at = d.id.get_chunk_info(3).byte_offset
with open(os.path.join(folder, 'damaged.h5'), 'r+b') as f:
    f.seek(at + 8)
    f.write(b'\xff')
