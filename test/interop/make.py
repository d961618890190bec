"""Makes the files that our reader is tested with: make.py FOLDER writes them all and prints their names."""
import ctypes
import json
import os
import sys

import h5py
import numpy as np
from h5py import h5f, h5p, h5t

folder = sys.argv[1]
elsewhere = os.path.join(folder, 'elsewhere.bin')
with open(elsewhere, 'wb') as raw:
    raw.write(bytes(range(32)))
made = []


def new(name, **options):
    made.append(name)
    return h5py.File(os.path.join(folder, name), 'w', **options)


# What h5py has no function for is called in the very library that it uses.
maps = open('/proc/self/maps').read().split()
hdf5 = ctypes.CDLL(next(word for word in maps if 'libhdf5' in word and '_hl' not in word))


def call(name, plist, *numbers):
    if getattr(hdf5, name)(ctypes.c_int64(plist.id), *[ctypes.c_uint(n) for n in numbers]) < 0:
        raise OSError(name)


NUMBERS = ['i1', 'u1', 'i2', 'u2', 'i4', 'u4', 'i8', 'u8', 'f2', 'f4', 'f8']
RECORD = np.dtype([('name', 'S6'), ('at', 'f8', (3,)), ('inner', [('a', '<i2'), ('b', '>i4')])])
GAPPY = np.dtype({'names': ['late', 'early'], 'formats': ['u1', '>f4'], 'offsets': [20, 3], 'itemsize': 29})
COLOUR = h5py.enum_dtype({'RED': 1, 'GREEN': -2, 'BLUE': 300}, basetype='i2')


def values_of_every_type():
    for code in NUMBERS:
        for order in '<>':
            dtype = np.dtype(order + code)
            if dtype.kind == 'f':
                yield order + code, np.array([0, -1.5, np.inf, np.nan, 2.0 ** -14, 1024], dtype)
            else:
                limits = np.iinfo(dtype)
                yield order + code, np.array([0, 1, limits.min, limits.max, 5, 6], dtype)
    record = np.zeros(6, RECORD)
    record['name'], record['at'], record['inner']['a'], record['inner']['b'] = b'abc', 1.5, 7, -9
    yield 'record', record
    gappy = np.zeros(6, GAPPY)
    gappy['late'], gappy['early'] = np.arange(6), np.arange(6) / 4
    yield 'gappy', gappy
    yield 'bool', np.array([True, False] * 3)
    yield 'enum', np.array([1, -2, 300] * 2).astype(COLOUR)
    yield 'array', np.zeros(6, np.dtype('(2,3)<i4'))
    yield 'opaque', np.array([b'\x00\x01\x02\x03\x04'] * 6, 'V5')
    yield 'time', np.arange(6).astype('M8[s]').astype(h5py.opaque_dtype(np.dtype('M8[s]')))
    yield 'fixed', np.array([b'', b'a', b'bc', b'def', b'ghij', b'klmno'])


def attributes_of_every_type(obj):
    for name, values in values_of_every_type():
        if name == 'array':
            base = np.dtype('(2,3)<i4')
            obj.attrs.create('array', np.arange(36).reshape(6, 2, 3), shape=(6, 2, 3), dtype=base)
            continue
        obj.attrs.create(name, values)
        obj.attrs.create(name + ' 2-d', values.reshape(2, 3))
        obj.attrs.create(name + ' scalar', values[2], dtype=values.dtype)
    obj.attrs['text'] = 'Grüße'
    obj.attrs['no text'] = ''
    obj.attrs['texts'] = ['a', '', 'ccc', '日本']
    obj.attrs.create('ascii', ['x', 'yy'], dtype=h5py.string_dtype('ascii'))
    obj.attrs.create('utf8 of 8', 'äöü'.encode(), dtype=h5py.string_dtype('utf-8', 8))
    obj.attrs['null'] = h5py.Empty('f4')
    obj.attrs['null text'] = h5py.Empty(h5py.string_dtype())
    sequences = np.empty(3, object)
    sequences[:] = [np.arange(2.0), np.arange(0.0), np.arange(5.0)]
    obj.attrs.create('sequences', sequences, dtype=h5py.vlen_dtype('f8'))
    obj.attrs['empty'] = np.zeros(0)
    for pad, word in ((h5t.STR_NULLTERM, 'zero'), (h5t.STR_SPACEPAD, 'space')):
        t = h5t.C_S1.copy()
        t.set_size(8)
        t.set_strpad(pad)
        a = h5py.h5a.create(obj.id, word.encode(), t, h5py.h5s.create(h5py.h5s.SCALAR))
        a.write(np.array(b'four    ' if pad == h5t.STR_SPACEPAD else b'four', 'S8'), t)
    for t, word in ((h5t.STD_B8LE, 'bits 1'), (h5t.STD_B16LE, 'bits 2'), (h5t.STD_B32LE, 'bits 4'), (h5t.STD_B64LE, 'bits 8')):
        a = h5py.h5a.create(obj.id, word.encode(), t, h5py.h5s.create_simple((2,)))
        a.write(np.array([1, 200], 'u%d' % t.get_size()), t)


def datasets_of_every_kind(group):
    for name, values in values_of_every_type():
        group.create_dataset(name, data=values)
    data = np.arange(60.0).reshape(10, 6)
    group.create_dataset('contiguous', data=data)
    group.create_dataset('chunked', data=data, chunks=(4, 4))
    group.create_dataset('growing', data=data, chunks=(4, 4), maxshape=(None, 6))
    group.create_dataset('growing both', data=data, chunks=(4, 4), maxshape=(None, None))
    group.create_dataset('may grow', data=data, chunks=(4, 4), maxshape=(20, 6))
    group.create_dataset('one chunk', data=data, chunks=(10, 6), compression='gzip')
    group.create_dataset('filtered', data=data, chunks=(4, 4), compression='gzip', shuffle=True, fletcher32=True)
    group.create_dataset('lzf', data=data, chunks=(4, 4), compression='lzf')
    group.create_dataset('scaled', data=data, chunks=(4, 4), scaleoffset=3)
    group.create_dataset('scalar', data=3.5)
    group.create_dataset('null', data=h5py.Empty('i4'))
    group.create_dataset('unwritten', (3, 4), 'f4', fillvalue=-1)
    group.create_dataset('nothing', (0, 4), maxshape=(None, 4), dtype='f4')
    group.create_dataset('text', data=['a', 'bb', ''], dtype=h5py.string_dtype())
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple((3,))
    compact = h5py.h5d.create(group.id, b'compact', h5t.NATIVE_INT32, space, plist)
    compact.write(h5py.h5s.ALL, h5py.h5s.ALL, np.arange(3, dtype='i4'))
    if group.file.libver[1] != 'earliest':
        layout = h5py.VirtualLayout((10, 6), 'f8')
        layout[:] = h5py.VirtualSource('.', group.name + '/contiguous', (10, 6))
        group.create_virtual_dataset('virtual', layout)
    group.attrs['note'] = 'every kind of dataset'


def many(f, ordered, most=300):
    for count in (1, 10, most):
        g = f.create_group('members %d' % count, track_order=ordered)
        for i in range(count):
            g.create_group('m%d' % (i * 7919 % count))
    for count in (1, 300):
        g = f.create_group('attributes %d' % count, track_order=ordered)
        for i in range(count):
            g.attrs['a%d' % (i * 7919 % count)] = i
        d = f.create_dataset('data with %d' % count, data=np.arange(3), track_order=ordered)
        for i in range(count):
            d.attrs['a%d' % (i * 7919 % count)] = 'text %d' % i


def links(f):
    deep = f.create_group('z/y/x/w')
    deep['data'] = np.arange(4)
    f['alias'] = deep['data']
    f['z/up'] = f['z']
    deep['root'] = f['/']
    f['soft'] = h5py.SoftLink('/z/y/x')
    f['z/relative'] = h5py.SoftLink('y/x/w')
    f['dangling'] = h5py.SoftLink('/not/there')
    f['out'] = h5py.ExternalLink('other.h5', '/some/where')
    f['größe'] = np.arange(2)
    f['日本 😀'] = np.arange(2)
    f['n' * 300] = np.arange(2)
    f['type'] = RECORD
    f.create_dataset('of type', (2,), f['type'])
    f.attrs.create('of type', np.zeros(2, RECORD), dtype=f['type'])
    f['type'].attrs['about'] = 'shared'
    f.attrs['to'] = f['z/y'].ref
    f.attrs.create('refs', [f['/'].ref, f['alias'].ref, f['type'].ref], dtype=h5py.ref_dtype)
    f.attrs['region'] = f['alias'].regionref[1:3]
    h5py.h5o.set_comment(f.id, b'about z', obj_name=b'z')
    gcpl = h5p.create(h5p.GROUP_CREATE)
    gcpl.set_link_creation_order(h5p.CRT_ORDER_TRACKED)
    gcpl.set_attr_phase_change(20, 10)
    call('H5Pset_link_phase_change', gcpl, 30, 20)
    h5py.h5g.create(f.id, b'settings', gcpl=gcpl)
    f.create_dataset('with times', data=np.arange(3), track_times=True)
    f.create_dataset('elsewhere', (4,), 'f8', external=[(elsewhere, 0, 32)])


for libver in ('earliest', 'latest'):
    for ordered in (False, True):
        tag = '%s-%s.h5' % (libver, 'ordered' if ordered else 'by-name')
        with new('attributes-' + tag, libver=libver, track_order=ordered) as f:
            attributes_of_every_type(f.create_group('g', track_order=ordered))
            attributes_of_every_type(f.create_dataset('d', data=1, track_order=ordered))
        with new('datasets-' + tag, libver=libver, track_order=ordered) as f:
            datasets_of_every_kind(f.create_group('g', track_order=ordered))
        with new('many-' + tag, libver=libver, track_order=ordered) as f:
            many(f, ordered, 5000 if ordered == (libver == 'latest') else 500)
        with new('links-' + tag, libver=libver, track_order=ordered) as f:
            links(f)
    for block in (512, 2048):
        with new('block-%d-%s.h5' % (block, libver), libver=libver, userblock_size=block) as f:
            links(f)
            many(f, False)
    with new('empty-%s.h5' % libver, libver=libver):
        pass

with new('big-attribute.h5', libver='latest') as f:
    f.attrs['big'] = np.arange(20000, dtype='f8')
    f.attrs['small'] = 1
    g = f.create_group('g')
    for i in range(3):
        g.attrs['big%d' % i] = np.full(10000, i, 'f8')
with new('v108.h5', libver=('earliest', 'v108')) as f:
    links(f)
    many(f, True)
with new('v110.h5', libver=('v108', 'v110')) as f:
    datasets_of_every_kind(f.create_group('g'))
for strategy in ('fsm', 'page', 'aggregate', 'none'):
    with new('space-%s.h5' % strategy, fs_strategy=strategy, **({'fs_persist': True} if strategy in ('fsm', 'page') else {})) as f:
        links(f)
        many(f, False)
        f['gone'] = np.arange(5000)
        del f['gone'], f['members 10/m3']


def with_creation_list(name, calls, fill, libver):
    fcpl = h5p.create(h5p.FILE_CREATE)
    for function, *numbers in calls:
        call(function, fcpl, *numbers)
    fapl = h5p.create(h5p.FILE_ACCESS)
    fapl.set_libver_bounds(h5f.LIBVER_EARLIEST if libver == 'earliest' else h5f.LIBVER_LATEST, h5f.LIBVER_LATEST)
    made.append(name)
    with h5py.File(h5f.create(os.path.join(folder, name).encode(), h5f.ACC_TRUNC, fcpl, fapl)) as f:
        fill(f)


def trees(f):
    many(f, False)
    links(f)
    f.create_dataset('chunks', data=np.arange(500.0), chunks=(1,), maxshape=(None,))


def shared(f):
    for i in range(20):
        d = f.create_dataset('d%d' % i, data=np.arange(10.0), fillvalue=-1, chunks=(5,), compression='gzip')
        d.attrs['units'] = np.array([b'metres per second squared'])
        d.attrs['range'] = np.arange(40.0)
    g = f.create_group('g')
    for i in range(20):
        g.attrs['a%d' % i] = np.arange(40.0)
    f['type'] = RECORD
    for i in range(3):
        f.create_group('typed %d' % i).attrs.create('of type', np.zeros(4, RECORD), dtype=f['type'])
        f['typed %d' % i].attrs['to'] = np.array([f['g'].ref] * 8, h5py.ref_dtype)


for libver in ('earliest', 'latest'):
    # Arguments: half the fan-out of groups (inner nodes, leaves), half the fan-out of chunks.
    with_creation_list('sym-k-%s.h5' % libver, [('H5Pset_sym_k', 5, 7)], trees, libver)
    with_creation_list('both-k-%s.h5' % libver, [('H5Pset_sym_k', 3, 2), ('H5Pset_istore_k', 3)], trees, libver)
    # Every kind of message (dataspace 2, datatype 8, fill 32, filters 2048, attribute 4096) of 16 bytes or more is shared.
    with_creation_list('shared-%s.h5' % libver, [('H5Pset_shared_mesg_nindexes', 1), ('H5Pset_shared_mesg_index', 0, 2 + 8 + 32 + 2048 + 4096, 16)], shared, libver)
    each = [('H5Pset_shared_mesg_index', i, kind, 16) for i, kind in enumerate((2, 8, 32, 2048, 4096))]
    with_creation_list('shared-each-%s.h5' % libver, [('H5Pset_shared_mesg_nindexes', 5), *each], shared, libver)
    tree = [('H5Pset_shared_mesg_nindexes', 1), ('H5Pset_shared_mesg_index', 0, 2 + 8 + 32 + 2048 + 4096, 16), ('H5Pset_shared_mesg_phase_change', 0, 0)]
    with_creation_list('shared-tree-%s.h5' % libver, tree, shared, libver)
print(json.dumps(made))
