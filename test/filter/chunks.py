"""Chunks that libhdf5 filtered, with the bytes that it reads back: one line of JSON each, on standard output.

usage: chunks.py SEED REPEATS FILE      makes FILE, a dataset of one chunk for each line
       chunks.py --read FILE            writes other chunks and reads them: lines {"dataset", "mask", "chunk"} on standard input

{"dataset", "name", "filters": [{"id", "flags", "values"}], "mask", "elementSize", "shape", "chunk": base64, "data": base64}
"""
import base64
import ctypes
import itertools
import json
import sys

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t, h5z



def libhdf5():
    """The library that h5py uses: some functions are not wrapped."""
    with open('/proc/self/maps') as maps:
        for line in maps:
            path = line.split()[-1]
            if 'libhdf5' in path and '_hl' not in path and 'cpp' not in path:
                return ctypes.CDLL(path)
    raise RuntimeError('libhdf5 not found in /proc/self/maps')


lib = libhdf5()
lib.H5Pset_fill_value.argtypes = [ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]


def filters_of(plist):
    """Not get_filter of h5py: it gives 16 parameters at most."""
    found = []
    for i in range(plist.get_nfilters()):
        flags, config = ctypes.c_uint(), ctypes.c_uint()
        count, values = ctypes.c_size_t(256), (ctypes.c_uint * 256)()
        id = lib.H5Pget_filter2(ctypes.c_int64(plist.id), ctypes.c_uint(i), ctypes.byref(flags), ctypes.byref(count), values,
                                ctypes.c_size_t(0), None, ctypes.byref(config))
        found.append({'id': id, 'flags': flags.value, 'values': list(values[:count.value])})
    return found


def bytes_of(dataset):
    """What the dataset holds, in its own type."""
    type = dataset.get_type()
    back = np.zeros(type.get_size() * int(np.prod(dataset.shape)), 'u1')
    dataset.read(h5s.ALL, h5s.ALL, back, type)
    return back.tobytes()


def text(bytes):
    return base64.b64encode(bytes).decode()


if sys.argv[1] == '--read':
    lines = [json.loads(line) for line in sys.stdin]
    with h5py.File(sys.argv[2], 'r+') as file:
        for given in lines:
            dataset = file[given['dataset'] + ' empty'].id
            dataset.write_direct_chunk((0,) * dataset.rank, base64.b64decode(given['chunk']), given['mask'])
    # In an open file libhdf5 remembers the mask that the chunk had before.
    with h5py.File(sys.argv[2], 'r') as file:
        for given in lines:
            try:
                print(json.dumps({'data': text(bytes_of(file[given['dataset'] + ' empty'].id))}))
            except OSError as error:
                print(json.dumps({'error': str(error)}))
    sys.exit()

rng = np.random.default_rng(int(sys.argv[1]))
REPEATS = int(sys.argv[2])
file = h5py.File(sys.argv[3], 'w')
number = itertools.count()


def emit(name, type, data, shape, filters, fill=None, undefined=False):
    """Writes `data`, bytes in the type of the dataset, through the filters that `filters` adds to a property list."""
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_chunk(shape)
    if undefined:
        assert lib.H5Pset_fill_value(plist.id, type.id, None) >= 0
    elif fill is not None:
        bytes = ctypes.create_string_buffer(fill, len(fill))
        assert lib.H5Pset_fill_value(plist.id, type.id, bytes) >= 0
    filters(plist)
    space = h5s.create_simple(shape)
    path = str(next(number))
    dataset = h5d.create(file.id, path.encode(), type, space, plist)
    # For --read: where a chunk of the same size is replaced, libhdf5 1.10 keeps its mask.
    h5d.create(file.id, (path + ' empty').encode(), type, space, plist)
    buffer = np.frombuffer(data, 'u1').copy()
    dataset.write(h5s.ALL, h5s.ALL, buffer, type)
    file.flush()
    # This also takes the chunk out of the cache, where it is as it was before the filters.
    mask, chunk = dataset.read_direct_chunk((0,) * len(shape))
    data = bytes_of(dataset)
    print(json.dumps({
        'dataset': path,
        'name': name,
        'filters': filters_of(dataset.get_create_plist()),
        'mask': mask,
        'elementSize': type.get_size(),
        'shape': list(shape),
        'chunk': text(chunk),
        'data': text(data),
    }))


def some_shape():
    return tuple(int(n) for n in rng.integers(1, 40, rng.integers(1, 3)))


def integers(dtype, n):
    """Integers of a random range: one value, a few, or all that the type has."""
    info = np.iinfo(dtype)
    bits = int(rng.integers(0, 8 * np.dtype(dtype).itemsize + 1))
    width = 2 ** bits - 1
    lowest = int(info.min) + int(rng.random() * (int(info.max) - int(info.min) - width)) if width < info.max - info.min else int(info.min)
    lowest = max(int(info.min), min(lowest, int(info.max) - width))
    offsets = [int(rng.random() * (width + 1)) for _ in range(n)]
    values = [min(int(info.max), lowest + o) for o in offsets]
    if n > 2 and rng.random() < 0.3:
        values[1], values[2] = lowest, min(int(info.max), lowest + width)
    return np.array(values, dtype=np.dtype(dtype))


INTEGERS = [order + kind + size for order in '<>' for kind in 'iu' for size in '1248']
FLOATS = [order + 'f' + size for order in '<>' for size in '48']


def scale_offset():
    for dtype in INTEGERS:
        for fill in ('default', 'undefined', 'value'):
            shape = some_shape()
            n = int(np.prod(shape))
            data = integers(dtype, n)
            options = {}
            if fill == 'undefined':
                options['undefined'] = True
            if fill == 'value':
                chosen = data[rng.integers(n)] if rng.random() < 0.7 else np.array(7, data.dtype)
                data = np.where(rng.random(n) < 0.3, chosen, data).astype(data.dtype)
                options['fill'] = chosen.tobytes()
            size = data.dtype.itemsize
            factor = int(rng.choice([0, 0, 0, int(rng.integers(1, 8 * size + 1)), 8 * size]))
            emit(f'scale-offset {dtype} {fill} {factor}', h5t.py_create(data.dtype), data.tobytes(), shape,
                 lambda p: p.set_scaleoffset(h5z.SO_INT, factor), **options)
    for dtype in FLOATS:
        for fill in ('default', 'undefined', 'value'):
            shape = some_shape()
            n = int(np.prod(shape))
            scale = float(10.0 ** rng.integers(-4, 8))
            data = (rng.normal(size=n) * scale).astype(dtype)
            if rng.random() < 0.2:
                data[:] = data[0]
            options = {}
            if fill == 'undefined':
                options['undefined'] = True
            if fill == 'value':
                chosen = np.array(-99.5, dtype)
                data = np.where(rng.random(n) < 0.3, chosen, data).astype(dtype)
                options['fill'] = chosen.tobytes()
            digits = int(rng.integers(0, 8))
            emit(f'scale-offset {dtype} {fill} {digits}', h5t.py_create(data.dtype), data.tobytes(), shape,
                 lambda p: p.set_scaleoffset(h5z.SO_FLOAT_DSCALE, digits), **options)


def odd_integer():
    """An integer type of any precision and offset."""
    size = int(rng.choice([1, 2, 3, 4, 5, 8]))
    bits = int(rng.integers(1, size * 8 + 1))
    offset = int(rng.integers(0, size * 8 - bits + 1))
    type = (h5t.STD_I64LE if rng.random() < 0.5 else h5t.STD_I64BE).copy()
    if size != 8:
        type.set_precision(min(bits, size * 8))
        type.set_size(size)
    type.set_precision(bits)
    type.set_offset(offset)
    type.set_sign(h5t.SGN_2 if rng.random() < 0.5 else h5t.SGN_NONE)
    type.set_pad(h5t.PAD_ZERO, h5t.PAD_ZERO)
    return type


def some_type(depth=0, last=True):
    """Members behind an array of arrays or compounds are left out: libhdf5 packs them wrongly, and may crash."""
    choice = rng.random()
    if depth < 3 and choice < 0.2:
        shape = tuple(int(n) for n in rng.integers(1, 4, rng.integers(1, 3)))
        return h5t.array_create(some_type(depth + 1 if last else 3, last), shape)
    if depth < 3 and choice < 0.45:
        count = int(rng.integers(1, 4))
        members = [some_type(depth + 1, last and i == count - 1) for i in range(count)]
        gaps = [int(rng.integers(0, 4)) for _ in members]
        type = h5t.create(h5t.COMPOUND, sum(m.get_size() for m in members) + sum(gaps))
        at = 0
        for i, (member, gap) in enumerate(zip(members, gaps)):
            type.insert(b'm%d' % i, at + gap, member)
            at += gap + member.get_size()
        return type
    if choice < 0.55:
        type = h5t.C_S1.copy()
        type.set_size(int(rng.integers(1, 9)))
        return type
    if choice < 0.6:
        return h5t.create(h5t.OPAQUE, int(rng.integers(1, 9)))
    if choice < 0.75:
        return h5t.py_create(np.dtype(str(rng.choice(FLOATS))))
    return odd_integer()


def nbit():
    for _ in range(30):
        type = some_type()
        shape = some_shape()
        data = rng.bytes(type.get_size() * int(np.prod(shape)))
        name = f'nbit {type.get_class()} of {type.get_size()} bytes'
        emit(name, type, data, shape, lambda p: p.set_filter(h5z.FILTER_NBIT))


def szip():
    for dtype in INTEGERS + FLOATS + ['<f2', 'odd', 'odd']:
        for options in (h5z.SZIP_EC_OPTION_MASK, h5z.SZIP_NN_OPTION_MASK):
            pixels = int(rng.choice([2, 4, 8, 10, 16, 32]))
            shape = tuple(int(n) for n in rng.integers(6, 90, 2)) if rng.random() < 0.7 else (int(rng.integers(40, 9000)),)
            n = int(np.prod(shape))
            if dtype == 'odd':
                type = h5t.STD_U32LE.copy() if rng.random() < 0.5 else h5t.STD_U16BE.copy()
                type.set_precision(int(rng.integers(1, min(24, type.get_size() * 8) + 1)))
                full = rng.integers(0, 2 ** type.get_precision(), n)
                data = full.astype('<u4' if type.get_order() == h5t.ORDER_LE else '>u2').tobytes()
            else:
                type = h5t.py_create(np.dtype(dtype))
                how = rng.integers(4)
                if 'f' in dtype:
                    values = np.cumsum(rng.normal(size=n)) if how else np.zeros(n)
                elif how == 0:
                    values = np.frombuffer(rng.bytes(n * 8), '<u8')
                elif how == 1:
                    values = np.cumsum(rng.integers(-2, 3, n))
                elif how == 2:
                    values = np.where(rng.random(n) < 0.01, rng.integers(0, 100, n), 0)
                else:
                    values = rng.integers(0, 4, n)
                data = values.astype(dtype).tobytes()
            emit(f'szip {dtype} {options} {pixels} {shape}', type, data, shape, lambda p: p.set_szip(options, pixels))


def lzf():
    for dtype in INTEGERS + FLOATS:
        shape = some_shape() if rng.random() < 0.7 else (int(rng.integers(1000, 30000)),)
        n = int(np.prod(shape))
        how = rng.integers(4)
        if how == 0:
            values = np.zeros(n)
        elif how == 1:
            values = np.arange(n) // 3
        elif how == 2:
            values = np.tile(rng.integers(0, 100, 17), n)[:n]
        else:
            values = rng.integers(0, 3, n)
        data = values.astype(dtype).tobytes()
        emit(f'lzf {dtype}', h5t.py_create(np.dtype(dtype)), data, shape,
             lambda p: p.set_filter(h5z.FILTER_LZF, h5z.FLAG_OPTIONAL))


def combined():
    """Several filters, in the order that h5py gives them and in others."""
    steps = {
        'shuffle': lambda p: p.set_shuffle(),
        'deflate': lambda p: p.set_deflate(int(rng.integers(0, 10))),
        'fletcher32': lambda p: p.set_fletcher32(),
        'lzf': lambda p: p.set_filter(h5z.FILTER_LZF, h5z.FLAG_OPTIONAL),
        'nbit': lambda p: p.set_filter(h5z.FILTER_NBIT),
        'szip': lambda p: p.set_szip(32, 8),
    }
    for names in itertools.chain(itertools.permutations(steps, 2), [rng.permutation(list(steps))[:4] for _ in range(10)]):
        # szip and nbit look at elements, and come first.
        names = sorted(names, key=lambda name: name not in ('nbit', 'szip'))
        dtype = str(rng.choice(INTEGERS + FLOATS))
        n = int(rng.integers(64, 3000))
        data = np.cumsum(rng.integers(-3, 4, n)).astype(dtype).tobytes()
        emit(f'{"+".join(names)} {dtype}', h5t.py_create(np.dtype(dtype)), data, (n,),
             lambda p: [steps[name](p) for name in names])


for _ in range(REPEATS):
    scale_offset()
    nbit()
    if h5z.filter_avail(h5z.FILTER_SZIP) and h5z.get_filter_info(h5z.FILTER_SZIP) & h5z.FILTER_CONFIG_ENCODE_ENABLED:
        szip()
    lzf()
    combined()
file.close()
