"""Ordinary HDF5 files of every layout, index, filter, type and structure that libhdf5 writes, with what is in them.

usage: python3 corpus.py FOLDER [PATTERN ...]

Writes FOLDER/<name>.h5 and FOLDER/<name>.json for every name that contains one of the patterns (all without one), and prints the
number of files. library.py tells what the JSON holds. Some files have others beside them: <name>.<n>.raw (external data),
<name>.source*.h5 (virtual data, external links). Values are the same in every run. Needs h5py and, for some properties that h5py
does not wrap, /proc/self/maps.
"""
import ctypes
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import h5py
import numpy as np
from h5py import h5a, h5d, h5f, h5p, h5r, h5s, h5t, h5z
from library import check, describe, lib, write

folder = os.path.abspath(sys.argv[1])
patterns = sys.argv[2:]
os.makedirs(folder, exist_ok=True)
# Names of external data, sources and linked files are relative to the folder.
os.chdir(folder)
made = 0

VERSIONS = {'earliest': ('earliest', 'v108'), 'v108': ('v108', 'v108'), 'v110': ('v110', 'v110'), 'latest': ('latest', 'latest')}
UNLIMITED = h5s.UNLIMITED


def file(name, build, version='latest', userblock=0, fcpl=None):
    """Makes one file; `build` gets it open."""
    global made
    if patterns and not any(pattern in name for pattern in patterns):
        return
    fapl = h5p.create(h5p.FILE_ACCESS)
    bounds = {'earliest': h5f.LIBVER_EARLIEST, 'v108': h5f.LIBVER_V18, 'v110': h5f.LIBVER_V110, 'latest': h5f.LIBVER_LATEST}
    low, high = VERSIONS[version]
    fapl.set_libver_bounds(bounds[low], bounds['latest' if version == 'earliest' else high])
    fapl.set_fclose_degree(h5f.CLOSE_STRONG)
    creation = h5p.create(h5p.FILE_CREATE)
    if userblock:
        creation.set_userblock(userblock)
    if fcpl:
        fcpl(creation)
    path = f'{name}.h5'
    with h5py.File(h5f.create(path.encode(), h5f.ACC_TRUNC, creation, fapl)) as opened:
        rng = np.random.default_rng(abs(hash_of(name)))
        build(opened, rng)
    if userblock:
        with open(path, 'r+b') as raw:
            raw.write(b'user block '.ljust(userblock, b'.'))
    with open(f'{name}.json', 'w') as out:
        out.write(describe(path))
    made += 1


def hash_of(text):
    """Not hash(): that differs from run to run."""
    state = 0x811C9DC5
    for byte in text.encode():
        state = (state ^ byte) * 0x01000193 & 0xFFFFFFFF
    return state


# ---------------------------------------------------------------- datasets

FILTERS = {
    'none': lambda p: None,
    'deflate': lambda p: p.set_deflate(6),
    'shuffle': lambda p: p.set_shuffle(),
    'fletcher32': lambda p: p.set_fletcher32(),
    'lzf': lambda p: p.set_filter(h5z.FILTER_LZF, h5z.FLAG_OPTIONAL),
    'nbit': lambda p: p.set_filter(h5z.FILTER_NBIT),
    'scaleoffset': lambda p: p.set_scaleoffset(h5z.SO_INT, 0),
    'szip-nn': lambda p: p.set_szip(h5z.SZIP_NN_OPTION_MASK, 8),
    'szip-ec': lambda p: p.set_szip(h5z.SZIP_EC_OPTION_MASK, 16),
    'shuffle-deflate': lambda p: (p.set_shuffle(), p.set_deflate(4)),
    'shuffle-lzf': lambda p: (p.set_shuffle(), FILTERS['lzf'](p)),
    'shuffle-deflate-fletcher32': lambda p: (p.set_shuffle(), p.set_deflate(1), p.set_fletcher32()),
    'fletcher32-deflate': lambda p: (p.set_fletcher32(), p.set_deflate(9)),
    'scaleoffset-deflate': lambda p: (p.set_scaleoffset(h5z.SO_INT, 0), p.set_deflate(6)),
    'nbit-deflate-fletcher32': lambda p: (p.set_filter(h5z.FILTER_NBIT), p.set_deflate(6), p.set_fletcher32()),
    'szip-fletcher32': lambda p: (p.set_szip(h5z.SZIP_NN_OPTION_MASK, 4), p.set_fletcher32()),
}
if not h5z.filter_avail(h5z.FILTER_SZIP) or not h5z.get_filter_info(h5z.FILTER_SZIP) & h5z.FILTER_CONFIG_ENCODE_ENABLED:
    for name in [name for name in FILTERS if 'szip' in name]:
        del FILTERS[name]


def properties(chunks=None, filters='none', fill=None, allocate=None, edges=False, compact=False, external=None):
    plist = h5p.create(h5p.DATASET_CREATE)
    if chunks:
        plist.set_chunk(chunks)
    if compact:
        plist.set_layout(h5d.COMPACT)
    FILTERS[filters](plist)
    if fill is not None:
        plist.set_fill_value(fill)
    if allocate is not None:
        plist.set_alloc_time(allocate)
    if edges:
        check(lib.H5Pset_chunk_opts(plist.id, 2))
    for name, size in external or ():
        plist.set_external(name.encode(), 0, size)
    return plist


def create(group, name, type, shape, maximum=None, **options):
    space = h5s.create_simple(shape, maximum or shape) if shape != () else h5s.create(h5s.SCALAR)
    return h5d.create(group.id, name.encode(), type, space, properties(**options))


def values(rng, dtype, n):
    """Numbers that compress a little; with extremes."""
    dtype = np.dtype(dtype)
    if dtype.kind == 'f':
        data = np.cumsum(rng.normal(size=n)).astype(dtype)
        if n > 4:
            data[1:4] = [np.nan, -np.inf, 0.0]
        return data
    data = rng.integers(0, 100, n).astype(dtype)
    if n > 4 and rng.random() < 0.5:
        data[1], data[2] = np.iinfo(dtype).min, np.iinfo(dtype).max
    return data


def numbers(group, name, rng, dtype, shape, maximum=None, **options):
    dtype = np.dtype(dtype)
    dataset = create(group, name, h5t.py_create(dtype), shape, maximum, **options)
    n = int(np.prod(shape))
    data = values(rng, dtype, n)
    write(dataset, data.tobytes())
    return dataset


# ---------------------------------------------------------------- layouts and indexes

#: name: (version of the library, shape, maximum, chunk, other properties)
INDEXES = {
    'btree1': ('earliest', (23, 18), (UNLIMITED, 18), (8, 9), {}),
    'single': ('latest', (23, 18), (23, 18), (23, 18), {}),
    'implicit': ('latest', (23, 18), (23, 18), (8, 9), {'allocate': h5d.ALLOC_TIME_EARLY}),
    'fixed': ('latest', (23, 18), (40, 18), (8, 9), {}),
    'extensible': ('latest', (23, 18), (23, UNLIMITED), (8, 9), {}),
    'btree2': ('latest', (23, 18), (UNLIMITED, UNLIMITED), (8, 9), {}),
}
TYPES = {'integers': ['<i4', '>i2', '<u8', 'u1'], 'floats': ['<f8', '>f4', '<f2', '>f8']}


def layouts():
    for index, (version, shape, maximum, chunk, more) in INDEXES.items():
        for filters in FILTERS:
            if index == 'implicit' and filters != 'none':
                continue
            for kind, dtypes in TYPES.items():
                if kind == 'floats' and ('scaleoffset' in filters):
                    continue

                def build(opened, rng):
                    for dtype in dtypes:
                        numbers(opened, dtype, rng, dtype, shape, maximum, chunks=chunk, filters=filters, **more)
                file(f'chunked-{index}-{filters}-{kind}', build, version)
    for digits in (0, 2, 5):
        def build(opened, rng):
            for dtype in ('<f4', '>f8'):
                plist = properties(chunks=(10, 10))
                plist.set_scaleoffset(h5z.SO_FLOAT_DSCALE, digits)
                dataset = h5d.create(opened.id, dtype.encode(), h5t.py_create(np.dtype(dtype)), h5s.create_simple((23, 18)), plist)
                write(dataset, np.cumsum(rng.normal(size=23 * 18)).astype(dtype).tobytes())
        file(f'chunked-fixed-scaleoffset-digits{digits}', build)


def contents():
    """Chunks that are missing, masked, not filtered at the edge; many of them; allocated early or late."""
    for index, (version, shape, maximum, chunk, more) in INDEXES.items():
        if index in ('single', 'implicit'):
            continue
        for filters in ('none', 'shuffle-deflate'):
            def sparse(opened, rng):
                for dtype, fill in (('<i4', -7), ('>f8', 2.5)):
                    dataset = create(opened, dtype, h5t.py_create(np.dtype(dtype)), shape, maximum, chunks=chunk, filters=filters,
                                     fill=np.array(fill, dtype), **more)
                    h5py.Dataset(dataset)[9:12, 2:11] = np.arange(27).reshape(3, 9)
                create(opened, 'nothing', h5t.STD_I16LE, shape, maximum, chunks=chunk, filters=filters, **more)
            file(f'sparse-{index}-{filters}', sparse, version)

            def grown(opened, rng):
                rows = np.arange(23 * 18, dtype='<i4').reshape(23, 18)
                dataset = h5py.Dataset(create(opened, 'grown', h5t.STD_I32LE, (5, 18), maximum, chunks=chunk, filters=filters,
                                              fill=np.array(9, '<i4')))
                dataset[...] = rows[:5]
                if maximum[0] != 23:
                    dataset.resize((23, 18))
                    dataset[10:23] = rows[10:]
                    dataset.resize((12, 18))
                    dataset.resize((20, 18))
            if index in ('btree1', 'fixed', 'btree2'):
                file(f'resized-{index}-{filters}', grown, version)
        for filters in ('deflate', 'shuffle-deflate-fletcher32', 'lzf'):
            def masked(opened, rng):
                dataset = numbers(opened, 'masked', rng, '<i4', (24, 18), (40, maximum[1]) if maximum[0] == 23 else maximum, chunks=chunk,
                                  filters=filters)
                steps = dataset.get_create_plist().get_nfilters()
                for i, row in enumerate((0, 8, 16)):
                    data = np.arange(72, dtype='<i4') + 1000 * i
                    if i == 2 and filters.startswith('shuffle'):
                        planes = data.view('u1').reshape(-1, 4).T
                        dataset.write_direct_chunk((row, 9), planes.tobytes(), 0b110)
                    else:
                        dataset.write_direct_chunk((row, 9), data.tobytes(), (1 << steps) - 1)
            file(f'masked-{index}-{filters}', masked, version)
    for index in ('single', 'fixed', 'extensible', 'btree2'):
        version, shape, maximum, chunk, more = INDEXES[index]
        if index == 'single':
            chunk, shape = (23, 18), (20, 18)
            maximum = (23, 18)
        for filters in ('deflate', 'shuffle-lzf', 'fletcher32', 'nbit'):
            def edges(opened, rng):
                for dtype in ('<i4', '>f8'):
                    numbers(opened, dtype, rng, dtype, shape, maximum, chunks=chunk, filters=filters, edges=True)
            file(f'edges-{index}-{filters}', edges, version)
    many = {'btree1': ('earliest', (UNLIMITED,)), 'fixed': ('latest', (3000,)), 'extensible': ('latest', (UNLIMITED,)),
            'implicit': ('latest', (3000,)), 'btree2': ('latest', (UNLIMITED, UNLIMITED))}
    for index, (version, maximum) in many.items():
        for filters in ('none', 'deflate'):
            if index == 'implicit' and filters != 'none':
                continue
            def build(opened, rng):
                shape = (3000,) if len(maximum) == 1 else (60, 50)
                numbers(opened, 'many', rng, '<i2', shape, maximum, chunks=(1,) * len(shape), filters=filters,
                        **({'allocate': h5d.ALLOC_TIME_EARLY} if index == 'implicit' else {}))
            file(f'many-{index}-{filters}', build, version)
    for version in ('earliest', 'v108', 'v110', 'latest'):
        for time, allocate in (('early', h5d.ALLOC_TIME_EARLY), ('late', h5d.ALLOC_TIME_LATE), ('incremental', h5d.ALLOC_TIME_INCR)):
            def build(opened, rng):
                for part in ('written', 'never'):
                    for dtype, fill in (('<i4', 3), ('<f4', -1.5)):
                        for chunks in (None, (7,)):
                            if chunks is None and time == 'incremental':
                                continue
                            name = f'{part} {dtype} {chunks}'
                            dataset = create(opened, name, h5t.py_create(np.dtype(dtype)), (20,), chunks=chunks, allocate=allocate,
                                             fill=np.array(fill, dtype))
                            if part == 'written':
                                h5py.Dataset(dataset)[3:9] = np.arange(6)
            file(f'allocated-{time}-{version}', build, version)


def plain():
    """Contiguous, compact and external data; shapes; user blocks; versions."""
    for version in VERSIONS:
        def build(opened, rng):
            for dtypes in TYPES.values():
                for dtype in dtypes:
                    numbers(opened, f'contiguous {dtype}', rng, dtype, (23, 18))
                    numbers(opened, f'compact {dtype}', rng, dtype, (23, 18), compact=True)
                    create(opened, f'never {dtype}', h5t.py_create(np.dtype(dtype)), (5, 4))
        file(f'plain-{version}', build, version)

        def shapes(opened, rng):
            for rank in range(1, 9):
                shape = tuple(int(n) for n in rng.integers(1, 5, rank))
                numbers(opened, f'rank {rank}', rng, '<i4', shape)
                numbers(opened, f'rank {rank} chunked', rng, '<i4', shape, chunks=tuple(max(1, n - 1) for n in shape))
            numbers(opened, 'rank 32', rng, '<i4', (1,) * 31 + (3,))
            numbers(opened, 'scalar', rng, '<f8', ())
            create(opened, 'empty', h5t.STD_I32LE, (0, 4), (UNLIMITED, 4), chunks=(2, 4))
            create(opened, 'empty contiguous', h5t.STD_I32LE, (3, 0))
            h5d.create(opened.id, b'null', h5t.STD_I32LE, h5s.create(h5s.NULL))
        file(f'shapes-{version}', shapes, version)

        for files in (1, 3):
            file(f'external-{files}-{version}', lambda opened, rng: external(opened, rng, files, version), version)
        for userblock in (512, 4096):
            def build(opened, rng):
                numbers(opened, 'contiguous', rng, '<i4', (23, 18))
                numbers(opened, 'chunked', rng, '>f8', (23, 18), (UNLIMITED, 18), chunks=(8, 9), filters='deflate')
                opened.create_dataset('strings', data=['a', 'bc', 'ünïcödé'], dtype=h5py.string_dtype())
                opened['group/soft'] = h5py.SoftLink('/chunked')
                opened.attrs['reference'] = opened['contiguous'].ref
            file(f'userblock-{userblock}-{version}', build, version, userblock)


def external(opened, rng, files, version):
    """External data in one file, or in several of which the last has no limit."""
    name = f'external-{files}-{version}'
    sizes = [1200] if files == 1 else [100, 601, UNLIMITED]
    for i, size in enumerate(sizes):
        open(f'{name}.{i}.raw', 'wb').close()
    dataset = create(opened, 'external', h5t.STD_I32LE, (30, 10), external=[(f'{name}.{i}.raw', s) for i, s in enumerate(sizes)])
    write(dataset, values(rng, '<i4', 300).tobytes())


# ---------------------------------------------------------------- types

def odd(base, size, precision, offset, signed=True, bits=False):
    type = base.copy()
    # By the plain calls: h5py has none for bit fields.
    if type.get_size() != size:
        check(lib.H5Tset_precision(type.id, min(precision, 32)))
        check(lib.H5Tset_size(type.id, size))
    check(lib.H5Tset_precision(type.id, precision))
    check(lib.H5Tset_offset(type.id, offset))
    if not bits:
        type.set_sign(h5t.SGN_2 if signed else h5t.SGN_NONE)
    return type


def real(base, size, sign, exponent_at, exponent, mantissa_at, mantissa, bias, norm=h5t.NORM_IMPLIED, precision=None, offset=0):
    """A float of another layout."""
    type = base.copy()
    if size > type.get_size():
        type.set_size(size)
        type.set_precision(precision or size * 8)
    type.set_fields(sign, exponent_at, exponent, mantissa_at, mantissa)
    type.set_ebias(bias)
    type.set_norm(norm)
    if offset:
        type.set_offset(offset)
    if size <= type.get_size():
        type.set_precision(precision or size * 8)
        type.set_size(size)
    return type


def fixed_string(size, pad, cset):
    type = h5t.C_S1.copy()
    type.set_size(size)
    type.set_strpad(pad)
    type.set_cset(cset)
    return type


def opaque(size, tag):
    type = h5t.create(h5t.OPAQUE, size)
    type.set_tag(tag)
    return type


def compound(size, *members):
    type = h5t.create(h5t.COMPOUND, size)
    for name, at, member in members:
        type.insert(name.encode(), at, member)
    return type


def enumeration(base, **members):
    type = h5t.enum_create(base)
    for name, value in members.items():
        type.enum_insert(name.encode(), value)
    return type


def fixed_types():
    """Types whose elements are bytes in the file: name, type, and how to make elements."""
    noise = lambda rng, size, n: rng.bytes(size * n)
    types = {}
    for order in '<>':
        for kind in 'iu':
            for size in '1248':
                types[f'{kind}{size} {order}'] = (h5t.py_create(np.dtype(order + kind + size)), noise)
        for size in '248':
            types[f'f{size} {order}'] = (h5t.py_create(np.dtype(f'{order}f{size}')), noise)
        base = h5t.STD_I32LE if order == '<' else h5t.STD_I32BE
        bits = h5t.STD_B32LE if order == '<' else h5t.STD_B32BE
        for size, precision, offset, signed in ((4, 17, 0, True), (4, 12, 9, False), (2, 11, 5, True), (3, 24, 0, True), (5, 33, 4, False),
                                                (8, 63, 1, True), (1, 1, 7, False), (8, 40, 10, True)):
            types[f'odd integer {size} {precision} {offset} {order}'] = (odd(base, size, precision, offset, signed), noise)
        for size in (1, 2, 4, 8):
            types[f'bitfield {size} {order}'] = (odd(bits, size, size * 8, 0, bits=True), noise)
        types[f'bitfield odd {order}'] = (odd(bits, 4, 13, 6, bits=True), noise)
    long = lambda rng, size, n: np.cumsum(rng.normal(size=n)).astype(np.longdouble).tobytes()
    types['long double'] = (h5t.NATIVE_LDOUBLE.copy(), long)
    ascii = lambda pad: lambda rng, size, n: b''.join(bytes(rng.integers(97, 123, rng.integers(0, size))).ljust(size, pad) for _ in range(n))
    for pad, name, with_what in ((h5t.STR_NULLTERM, 'terminated', b'\0'), (h5t.STR_NULLPAD, 'padded', b'\0'), (h5t.STR_SPACEPAD, 'space', b' ')):
        types[f'string ascii {name}'] = (fixed_string(7, pad, h5t.CSET_ASCII), ascii(with_what))
        words = lambda rng, size, n, w=with_what: b''.join(str(rng.choice(['ä', 'öü', '日本', 'xyz', '', '€'])).encode().ljust(size, w) for _ in range(n))
        types[f'string utf8 {name}'] = (fixed_string(9, pad, h5t.CSET_UTF8), words)
    types['string of one'] = (fixed_string(1, h5t.STR_NULLPAD, h5t.CSET_ASCII), lambda rng, size, n: bytes(rng.integers(97, 123, n).astype('u1')))
    types['opaque 5'] = (opaque(5, b'five bytes'), noise)
    types['opaque 16 without a tag'] = (opaque(16, b''), noise)
    chosen = lambda dtype, choices: lambda rng, size, n: rng.choice(choices, n).astype(dtype).tobytes()
    types['bool'] = (h5t.py_create(np.dtype('?'), logical=True), chosen('i1', [0, 1]))
    types['enum i1'] = (enumeration(h5t.STD_I8LE, red=-1, green=0, blue=7), chosen('i1', [-1, 0, 7]))
    types['enum u2 >'] = (enumeration(h5t.STD_U16BE, small=1, large=65535), chosen('>u2', [1, 65535, 9]))
    types['enum i8'] = (enumeration(h5t.STD_I64LE, low=-2 ** 40, high=2 ** 40), chosen('<i8', [-2 ** 40, 2 ** 40]))
    inner = compound(7, ('x', 0, h5t.STD_I16BE), ('y', 3, h5t.IEEE_F32LE))
    types['compound'] = (compound(16, ('a', 0, h5t.STD_I32LE), ('b', 8, h5t.IEEE_F64LE)), noise)
    types['compound packed'] = (compound(5, ('a', 0, h5t.STD_I8LE), ('b', 1, h5t.STD_U32BE)), noise)
    types['compound backwards'] = (compound(8, ('late', 4, h5t.STD_I32LE), ('early', 0, h5t.STD_I32BE)), noise)
    types['compound nested'] = (compound(30, ('in', 2, inner), ('n', 10, h5t.STD_U8LE), ('more', 12, h5t.array_create(inner, (2,)))), noise)
    types['compound of everything'] = (compound(40, ('bool', 0, h5t.py_create(np.dtype('i1'))), ('text', 1, h5t.STD_U16LE),
                                                ('bits', 4, h5t.STD_B16LE), ('bytes', 6, opaque(3, b'x')),
                                                ('enum', 9, enumeration(h5t.STD_I8LE, a=1, b=2)), ('list', 12, h5t.array_create(h5t.IEEE_F32BE, (2, 3)))), noise)
    types['array'] = (h5t.array_create(h5t.STD_I16LE, (3,)), noise)
    types['array 2d >'] = (h5t.array_create(h5t.IEEE_F64BE, (2, 3)), noise)
    types['array of arrays'] = (h5t.array_create(h5t.array_create(h5t.STD_U8LE, (2,)), (3,)), noise)
    types['array of compounds'] = (h5t.array_create(inner, (2, 2)), noise)
    return types


def floats():
    """Floats of other layouts: written from float64, by libhdf5."""
    small = (15, 7, 8, 0, 7, 127)
    return {
        'bfloat16': real(h5t.IEEE_F32LE, 2, *small),
        'bfloat16 >': real(h5t.IEEE_F32BE, 2, *small),
        'float24': real(h5t.IEEE_F32LE, 3, 23, 16, 7, 0, 16, 63),
        'float128': real(h5t.IEEE_F64LE, 16, 127, 112, 15, 0, 112, 16383),
        'float128 >': real(h5t.IEEE_F64BE, 16, 127, 112, 15, 0, 112, 16383),
        'float20 in 4 bytes': real(h5t.IEEE_F32LE, 4, 26, 20, 6, 7, 13, 31, precision=20, offset=7),
        'float8': real(h5t.IEEE_F32LE, 1, 7, 3, 4, 0, 3, 7),
    }


def in_every_layout(opened, rng, name, type, elements, n=30):
    """The same elements contiguous, compact, chunked, filtered and in attributes."""
    size = type.get_size()
    shape = (n // 5, 5)
    options = {'contiguous': {}, 'compact': {'compact': True}, 'chunked': {'chunks': (4, 3)},
               'deflated': {'chunks': (4, 3), 'filters': 'shuffle-deflate'}, 'summed': {'chunks': (4, 3), 'filters': 'fletcher32'}}
    group = opened.create_group(name.replace('/', '|'))
    for layout, more in options.items():
        if layout == 'compact' and size * n > 60000:
            continue
        write(create(group, layout, type, shape, **more), elements(rng, size, n))
    write(create(group, 'scalar', type, ()), elements(rng, size, 1))
    create(group, 'never', type, shape)
    for attribute, space in (('list', h5s.create_simple((3,))), ('one', h5s.create(h5s.SCALAR))):
        made = h5a.create(group.id, attribute.encode(), type, space)
        check(lib.H5Awrite(made.id, type.id, elements(rng, size, space.get_simple_extent_npoints())))


def types():
    for name, (type, elements) in fixed_types().items():
        for version in ('earliest', 'latest'):
            file(f'type-{name.replace(" ", "-").replace("<", "le").replace(">", "be")}-{version}',
                 lambda opened, rng: in_every_layout(opened, rng, name, type, elements), version)
    for name, type in floats().items():
        def build(opened, rng):
            data = np.concatenate([np.cumsum(rng.normal(size=27)), [0.0, -0.0, np.inf]])
            for layout, more in {'contiguous': {}, 'chunked': {'chunks': (7,)}, 'deflated': {'chunks': (7,), 'filters': 'deflate'}}.items():
                write(create(opened, layout, type, (30,), **more), data.tobytes(), h5t.NATIVE_DOUBLE)
        file(f'type-{name.replace(" ", "-").replace(">", "be")}', build)
    for version in ('earliest', 'latest'):
        file(f'nbit-{version}', nbit, version)
        for kind, build in {'strings': long_strings, 'sequences': sequences, 'references': references, 'committed': committed}.items():
            file(f'type-{kind}-{version}', build, version)


def nbit(opened, rng):
    """nbit where it has something to do."""
    inner = compound(6, ('a', 0, odd(h5t.STD_I32LE, 4, 11, 3)), ('b', 4, odd(h5t.STD_I32BE, 2, 9, 0)))
    for name, type in {
        'integer': odd(h5t.STD_I32LE, 4, 17, 5), 'integer >': odd(h5t.STD_I32BE, 4, 17, 5), 'long': odd(h5t.STD_I32LE, 8, 40, 10),
        'short': odd(h5t.STD_I32BE, 2, 3, 1), 'array': h5t.array_create(odd(h5t.STD_I32LE, 4, 5, 2), (3,)), 'compound': inner,
        'nested': compound(20, ('c', 0, inner), ('s', 8, fixed_string(4, h5t.STR_NULLPAD, h5t.CSET_ASCII)), ('l', 12, h5t.array_create(inner, (1,)))),
        'opaque': opaque(3, b'x'), 'bits': odd(h5t.STD_B32LE, 4, 7, 7, bits=True), 'double': h5t.IEEE_F64BE,
    }.items():
        bytes = rng.bytes if name != 'nested' else lambda n: bytes_of_letters(rng, n)
        write(create(opened, name, type, (25,), chunks=(10,), filters='nbit'), bytes(25 * type.get_size()))


def bytes_of_letters(rng, n):
    return rng.integers(65, 90, n).astype('u1').tobytes()


WORDS = ['', 'a', 'plain text', 'grün', '日本語', 'x' * 300, 'tab\tand\nline', '€uro']


def long_strings(opened, rng):
    for cset, name in (('utf-8', 'utf8'), ('ascii', 'ascii')):
        dtype = h5py.string_dtype(cset)
        words = WORDS if name == 'utf8' else [word for word in WORDS if word.isascii()]
        data = np.array([str(rng.choice(words)) for _ in range(24)], dtype=object).reshape(6, 4)
        opened.create_dataset(f'{name} contiguous', data=data, dtype=dtype)
        opened.create_dataset(f'{name} chunked', data=data, dtype=dtype, chunks=(4, 3))
        opened.create_dataset(f'{name} deflated', data=data, dtype=dtype, chunks=(4, 3), compression='gzip', shuffle=True)
        opened.create_dataset(f'{name} scalar', data='one', dtype=dtype)
        opened.create_dataset(f'{name} never', (3,), dtype=dtype)
        opened.attrs.create(f'{name} list', data[0], dtype=dtype)
        opened.attrs.create(f'{name} one', 'text', dtype=dtype)
        plist = h5p.create(h5p.DATASET_CREATE)
        plist.set_layout(h5d.COMPACT)
        compact = h5d.create(opened.id, f'{name} compact'.encode(), h5t.py_create(dtype, logical=True), h5s.create_simple((6, 4)), plist)
        h5py.Dataset(compact)[...] = data
    pair = np.dtype([('name', h5py.string_dtype()), ('n', '<i4'), ('more', h5py.string_dtype(), (2,))])
    data = np.array([(f'name {i}', i, ['a', 'b' * i]) for i in range(5)], dtype=pair)
    opened.create_dataset('in compounds', data=data)
    opened.create_dataset('many', data=[f'string {i}' * (i % 50) for i in range(1000)], dtype=h5py.string_dtype(), chunks=(100,))


def sequences(opened, rng):
    for base in ('<i4', '>f8', 'u1', '<i8'):
        dtype = h5py.vlen_dtype(np.dtype(base))
        for layout, more in {'contiguous': {}, 'chunked': {'chunks': (4,)}, 'deflated': {'chunks': (4,), 'compression': 'gzip'}}.items():
            dataset = opened.create_dataset(f'{base} {layout}', (10,), dtype=dtype, **more)
            for i in range(10):
                if i != 3:
                    dataset[i] = rng.integers(0, 100, i * i).astype(base)
        opened.create_dataset(f'{base} never', (4,), dtype=dtype)
    # Sequences of sequences, of strings, of compounds: only the plain calls of libhdf5 write them.
    inner = h5t.vlen_create(h5t.STD_I16LE)
    pair = compound(8, ('a', 0, h5t.STD_I32LE), ('b', 4, h5t.IEEE_F32LE))
    kept = []

    def memory(items, size):
        buffer = ctypes.create_string_buffer(b''.join(items), max(1, size * len(items)))
        kept.append(buffer)
        return len(items).to_bytes(8, 'little') + ctypes.addressof(buffer).to_bytes(8, 'little')
    nested = [memory([memory([int(v).to_bytes(2, 'little') for v in range(j)], 2) for j in range(i)], 16) for i in range(5)]
    write(create(opened, 'of sequences', h5t.vlen_create(inner), (5,)), b''.join(nested))
    pairs = [memory([rng.bytes(8) for _ in range(i)], 8) for i in range(5)]
    write(create(opened, 'of compounds', h5t.vlen_create(pair), (5,)), b''.join(pairs))
    both = compound(24, ('n', 0, h5t.STD_I32LE), ('list', 8, h5t.vlen_create(h5t.STD_I32BE)))
    items = [i.to_bytes(8, 'little') + memory([rng.bytes(4) for _ in range(i)], 4) for i in range(5)]
    write(create(opened, 'in compounds', both, (5,)), b''.join(items))


def references(opened, rng):
    opened.create_dataset('target', data=np.arange(60).reshape(10, 6))
    group = opened.create_group('group/inner')
    refs = np.array([opened['target'].ref, group.ref, opened['/'].ref, opened['target'].ref], dtype=h5py.ref_dtype)
    opened.create_dataset('objects', data=refs, dtype=h5py.ref_dtype)
    opened.create_dataset('objects chunked', data=refs, dtype=h5py.ref_dtype, chunks=(3,))
    opened.create_dataset('objects deflated', data=refs, dtype=h5py.ref_dtype, chunks=(3,), compression='gzip')
    opened.create_dataset('objects never', (3,), dtype=h5py.ref_dtype)
    opened.attrs['object'] = opened['target'].ref
    target = opened['target']
    regions = [target.regionref[2:4, 1:5], target.regionref[:, ::2], target.regionref[...], target.regionref[3, 3]]
    points = h5s.create_simple((10, 6))
    points.select_elements([(0, 1), (9, 5), (4, 4)])
    dataset = opened.create_dataset('regions', (6,), dtype=h5py.regionref_dtype)
    for i, region in enumerate(regions):
        dataset[i] = region
    dataset[4] = h5r.create(opened.id, b'target', h5r.DATASET_REGION, points)
    chunked = opened.create_dataset('regions chunked', (4,), dtype=h5py.regionref_dtype, chunks=(3,))
    for i, region in enumerate(regions):
        chunked[i] = region
    opened.attrs['region'] = target.regionref[1:3, 2:4]
    pair = np.dtype([('to', h5py.ref_dtype), ('n', '<i4')])
    opened.create_dataset('in compounds', data=np.array([(opened['target'].ref, 1), (group.ref, 2)], dtype=pair))


def committed(opened, rng):
    opened['type'] = np.dtype([('a', '<i4'), ('b', '>f8', (2,))])
    opened['text'] = h5py.string_dtype()
    opened['group/number'] = np.dtype('<i2')
    opened['type'].attrs['about'] = 'a committed type'
    opened.create_dataset('first', data=np.zeros(3, opened['type'].dtype), dtype=opened['type'])
    opened.create_dataset('second', data=np.ones(3, opened['type'].dtype), dtype=opened['type'], chunks=(2,))
    opened.create_dataset('words', data=['a', 'b'], dtype=opened['text'])
    opened.attrs.create('typed', np.array(7, '<i2'), dtype=opened['group/number'])


# ---------------------------------------------------------------- structure

def structure():
    for version in VERSIONS:
        def links(opened, rng):
            opened.create_dataset('a/b/data', data=np.arange(5))
            opened['hard'] = opened['a/b/data']
            opened['soft'] = h5py.SoftLink('/a/b/data')
            opened['soft group'] = h5py.SoftLink('/a/b')
            opened['chain'] = h5py.SoftLink('/soft')
            opened['relative'] = h5py.SoftLink('a/b/data')
            opened['a/loop'] = opened['a']
            opened['dangling'] = h5py.SoftLink('/nowhere')
            opened['circular'] = h5py.SoftLink('/circular')
            name = f'links-{version}.source.h5'
            with h5py.File(name, 'w') as other:
                other.create_dataset('there/values', data=np.arange(7) * 1.5)
                other['soft'] = h5py.SoftLink('/there/values')
            opened['external'] = h5py.ExternalLink(name, '/there/values')
            opened['external group'] = h5py.ExternalLink(name, '/there')
            opened['external soft'] = h5py.ExternalLink(name, '/soft')
            opened['external dangling'] = h5py.ExternalLink(name, '/nothing')
            opened['external missing'] = h5py.ExternalLink('no such file.h5', '/x')
            opened['ünïcödé/名前'] = np.arange(3)
        file(f'links-{version}', links, version)

        def groups(opened, rng):
            for count in (0, 1, 8, 9, 300):
                group = opened.create_group(f'{count} links')
                for i in range(count):
                    group.create_group(f'link {i} {"x" * (i % 40)}')
            ordered = opened.create_group('ordered', track_order=True)
            for name in 'zyxabc':
                ordered.create_dataset(name, data=np.arange(3))
            deep = opened
            for i in range(40):
                deep = deep.create_group(f'{i}')
        file(f'groups-{version}', groups, version)

        def attributes(opened, rng):
            for count in (1, 8, 9, 60):
                group = opened.create_group(f'{count} attributes')
                for i in range(count):
                    group.attrs[f'attribute {i}'] = rng.integers(0, 100, i + 1)
            dataset = opened.create_dataset('data', data=np.arange(3))
            dataset.attrs['text'] = 'plain'
            dataset.attrs['list'] = ['a', 'bc', 'def']
            dataset.attrs['empty'] = h5py.Empty('f4')
            dataset.attrs['matrix'] = np.arange(6.0).reshape(2, 3)
            dataset.attrs['none'] = np.zeros((0, 3))
            dataset.attrs['pairs'] = np.array([(1, 2.5)], dtype=[('a', '<i4'), ('b', '>f4')])
            dataset.attrs['sequence'] = np.array([np.arange(3), np.arange(5)], dtype=h5py.vlen_dtype('<i4'))
            dataset.attrs['large'] = np.arange(7000)
            # Beyond 64 KiB an attribute needs dense storage.
            if version != 'earliest':
                dataset.attrs['larger'] = np.arange(40000)
                group = opened.create_group('large')
                group.attrs['strings'] = ['x' * (i % 100) for i in range(3000)]
                group.attrs['bytes'] = np.arange(200000, dtype='u1')
        file(f'attributes-{version}', attributes, version)

        def scales(opened, rng):
            opened['x'] = np.arange(4.0)
            opened['y'] = np.arange(3.0)
            opened['x'].make_scale('x axis')
            opened['y'].make_scale()
            data = opened.create_dataset('data', data=np.arange(12.0).reshape(4, 3))
            data.dims[0].attach_scale(opened['x'])
            data.dims[1].attach_scale(opened['y'])
            data.dims[0].label = 'rows'
        file(f'scales-{version}', scales, version)

    def little(opened, rng):
        numbers(opened, 'contiguous', rng, '<i4', (23, 18))
        # Not unlimited: with lengths of less than 8 bytes libhdf5 does not find that again.
        numbers(opened, 'chunked', rng, '<i4', (23, 18), (200, 18), chunks=(4, 9), filters='deflate')
        opened.create_group('group').attrs['text'] = ['a', 'b']
        opened['strings'] = ['one', 'two']
        for i in range(20):
            opened.create_dataset(f'more/{i}', data=np.arange(i))
    for offsets, lengths in ((4, 4), (8, 4), (4, 8), (2, 2), (2, 8)):
        # With 2 bytes and newer structures libhdf5 1.10 crashes.
        for version in ('earliest', 'latest') if offsets > 2 else ('earliest',):
            file(f'sizes-{offsets}-{lengths}-{version}', little, version, fcpl=lambda p: p.set_sizes(offsets, lengths))
    file('tree-sizes', little, 'earliest', fcpl=lambda p: (check(lib.H5Pset_sym_k(p.id, 2, 2)), check(lib.H5Pset_istore_k(p.id, 2))))
    for strategy in range(4):
        file(f'space-strategy-{strategy}', little,
             fcpl=lambda p: check(lib.H5Pset_file_space_strategy(p.id, strategy, strategy < 2, 1)))

    def shared(opened, rng):
        for i in range(30):
            dataset = opened.create_dataset(f'{i}', data=np.arange(10, dtype='>i4'), chunks=(5,), compression='gzip', maxshape=(None,))
            dataset.attrs['units'] = 'metres per second, the same in all of them' * 3
            dataset.attrs['pair'] = np.array([(i, 2.5)], dtype=[('a', '<i4'), ('b', '>f4')])

    def shared_messages(plist):
        check(lib.H5Pset_shared_mesg_nindexes(plist.id, 1))
        check(lib.H5Pset_shared_mesg_index(plist.id, 0, 0x1F, 16))
    for version in ('earliest', 'latest'):
        file(f'shared-messages-{version}', shared, version, fcpl=shared_messages)


# ---------------------------------------------------------------- virtual datasets

def source(name, shape=(10, 6), dtype='<i4', start=0, maximum=None):
    with h5py.File(name, 'w', libver='latest') as opened:
        n = int(np.prod(shape))
        opened.create_dataset('data', data=(np.arange(n) + start).astype(dtype).reshape(shape), maxshape=maximum or shape)
    return name


def slab(shape, start, count, stride=None, block=None, maximum=None):
    space = h5s.create_simple(shape, maximum or shape)
    space.select_hyperslab(start, count, stride or (1,) * len(shape), block or (1,) * len(shape))
    return space


def virtual(opened, name, shape, mappings, type=h5t.STD_I32LE, maximum=None, fill=None):
    plist = h5p.create(h5p.DATASET_CREATE)
    if fill is not None:
        plist.set_fill_value(fill)
    for target, path, dataset, origin in mappings:
        plist.set_virtual(target, path.encode(), dataset.encode(), origin)
    return h5d.create(opened.id, name.encode(), type, h5s.create_simple(shape, maximum or shape), plist)


def everything(shape):
    return h5s.create_simple(shape)


def virtuals():
    def name_of(case, i=''):
        return f'virtual-{case}.source{i}.h5'

    def stacked(opened, rng):
        paths = [source(name_of('stacked', i), start=100 * i) for i in range(4)]
        virtual(opened, 'rows', (4, 10, 6), [(slab((4, 10, 6), (i, 0, 0), (1, 10, 6)), path, 'data', everything((10, 6))) for i, path in enumerate(paths)])
        virtual(opened, 'side by side', (10, 24), [(slab((10, 24), (0, 6 * i), (10, 6)), path, 'data', everything((10, 6))) for i, path in enumerate(paths)])
        virtual(opened, 'parts', (10, 6), [(slab((10, 6), (0, 0), (5, 6)), paths[0], 'data', slab((10, 6), (5, 0), (5, 6)))], fill=np.array(-1, '<i4'))
    file('virtual-stacked', stacked)

    def strided(opened, rng):
        path = source(name_of('strided'), (12, 12))
        virtual(opened, 'every second', (6, 4), [(everything((6, 4)), path, 'data', slab((12, 12), (1, 0), (6, 4), (2, 3)))])
        virtual(opened, 'spread', (24, 6), [(slab((24, 6), (0, 1), (12, 3), (2, 2)), path, 'data', slab((12, 12), (0, 0), (12, 3), (1, 4)))], fill=np.array(7, '<i4'))
        virtual(opened, 'blocks', (8, 6), [(everything((8, 6)), path, 'data', slab((12, 12), (0, 0), (2, 2), (6, 6), (4, 3)))])
        united = slab((12, 12), (0, 0), (3, 4))
        united.select_hyperslab((6, 6), (3, 4), op=h5s.SELECT_OR)
        virtual(opened, 'united', (6, 4), [(everything((6, 4)), path, 'data', united)])
    file('virtual-strided', strided)

    def converted(opened, rng):
        ints, floats = source(name_of('converted', 0), dtype='>i2'), source(name_of('converted', 1), dtype='<f8')
        virtual(opened, 'as doubles', (10, 6), [(everything((10, 6)), ints, 'data', everything((10, 6)))], h5t.IEEE_F64BE)
        virtual(opened, 'as integers', (10, 6), [(everything((10, 6)), floats, 'data', everything((10, 6)))], h5t.STD_I64LE)
    file('virtual-converted', converted)

    def missing(opened, rng):
        path = source(name_of('missing'))
        virtual(opened, 'no file', (10, 12), [(slab((10, 12), (0, 0), (10, 6)), path, 'data', everything((10, 6))),
                                              (slab((10, 12), (0, 6), (10, 6)), 'no such file.h5', 'data', everything((10, 6)))], fill=np.array(-5, '<i4'))
        virtual(opened, 'no dataset', (10, 6), [(everything((10, 6)), path, 'nothing', everything((10, 6)))], fill=np.array(-6, '<i4'))
    file('virtual-missing', missing)

    def same_file(opened, rng):
        opened.create_dataset('origin', data=np.arange(60, dtype='<i4').reshape(10, 6), chunks=(4, 4), compression='gzip')
        virtual(opened, 'view', (6, 10), [(everything((6, 10)), '.', '/origin', everything((10, 6)))])
        virtual(opened, 'view of a view', (30,), [(everything((30,)), '.', '/view', slab((6, 10), (0, 0), (3, 10)))])
    file('virtual-same-file', same_file)

    def unlimited(opened, rng):
        path = source(name_of('unlimited'), (10, 6), maximum=(None, 6))
        target = slab((10, 6), (0, 0), (UNLIMITED, 6), maximum=(UNLIMITED, 6))
        origin = slab((10, 6), (0, 0), (UNLIMITED, 6), maximum=(UNLIMITED, 6))
        virtual(opened, 'rows', (10, 6), [(target, path, 'data', origin)], maximum=(UNLIMITED, 6))
        virtual(opened, 'every second row', (20, 12), [(slab((20, 12), (0, 3), (UNLIMITED, 1), (2, 1), (1, 6), maximum=(UNLIMITED, 12)), path, 'data',
                                                        slab((10, 6), (0, 0), (UNLIMITED, 1), (1, 1), (1, 6), maximum=(UNLIMITED, 6)))],
                maximum=(UNLIMITED, 12), fill=np.array(-1, '<i4'))
    file('virtual-unlimited', unlimited)

    def printf(opened, rng):
        for i in range(3):
            source(name_of('printf', f'-{i}'), start=1000 * i)
        target = slab((30, 6), (0, 0), (UNLIMITED, 1), (10, 6), (10, 6), maximum=(UNLIMITED, 6))
        virtual(opened, 'blocks', (30, 6), [(target, name_of('printf', '-%b'), 'data', everything((10, 6)))], maximum=(UNLIMITED, 6))
        with h5py.File(name_of('printf', '-all'), 'w') as other:
            for i in range(4):
                other[f'data{i}'] = np.arange(60, dtype='<i4').reshape(10, 6) * (i + 1)
        target = slab((40, 6), (0, 0), (UNLIMITED, 1), (10, 6), (10, 6), maximum=(UNLIMITED, 6))
        virtual(opened, 'datasets', (40, 6), [(target, name_of('printf', '-all'), 'data%b', everything((10, 6)))], maximum=(UNLIMITED, 6))
    file('virtual-printf', printf)

    def texts(opened, rng):
        path = name_of('texts')
        with h5py.File(path, 'w') as other:
            other.create_dataset('data', data=np.array([b'one', b'two', b'three'], 'S5'))
        layout = h5py.VirtualLayout((2, 3), 'S5')
        layout[0] = h5py.VirtualSource(path, 'data', (3,))
        layout[1] = h5py.VirtualSource(path, 'data', (3,))
        opened.create_virtual_dataset('texts', layout)
    file('virtual-texts', texts)


    def selections(opened, rng):
        path = source(name_of('selections'), (6, 8, 10))
        whole = (6, 8, 10)
        pieces = slab(whole, (0, 1, 2), (2, 3, 2), (3, 2, 4), (2, 1, 3))
        virtual(opened, 'blocks in three dimensions', (4, 3, 6), [(everything((4, 3, 6)), path, 'data', pieces)])
        virtual(opened, 'spread in three dimensions', (9, 9, 20), [(slab((9, 9, 20), (1, 0, 1), (2, 3, 3), (4, 3, 6), (2, 1, 2)), path, 'data', pieces)], fill=np.array(-2, '<i4'))
        virtual(opened, 'as a line', (72,), [(everything((72,)), path, 'data', pieces)])
        virtual(opened, 'a line in pieces', (200,), [(slab((200,), (3,), (24,), (8,), (3,)), path, 'data', pieces)], fill=np.array(-3, '<i4'))
        virtual(opened, 'as a plane', (48, 10), [(everything((48, 10)), path, 'data', everything(whole))])
        virtual(opened, 'transposed shape', (10, 8, 6), [(everything((10, 8, 6)), path, 'data', everything(whole))])
        united = slab(whole, (0, 0, 0), (2, 2, 5))
        united.select_hyperslab((1, 1, 3), (3, 4, 4), op=h5s.SELECT_OR)
        united.select_hyperslab((5, 0, 0), (1, 8, 1), op=h5s.SELECT_OR)
        n = united.get_select_npoints()
        virtual(opened, 'from a union', (n,), [(everything((n,)), path, 'data', united)])
        virtual(opened, 'a union to a union', whole, [(united, path, 'data', united)], fill=np.array(-4, '<i4'))
        virtual(opened, 'to a union', whole, [(united, path, 'data', slab(whole, (0, 0, 0), (1, 1, 1), block=(1, n // 10, 10)) if n % 10 == 0 and n <= 80 else united)])
        holes = slab(whole, (0, 0, 0), whole)
        holes.select_hyperslab((1, 1, 1), (3, 4, 5), op=h5s.SELECT_NOTB)
        n = holes.get_select_npoints()
        virtual(opened, 'with a hole', (n // 4, 4) if n % 4 == 0 else (n,), [(everything((n // 4, 4) if n % 4 == 0 else (n,)), path, 'data', holes)])
        virtual(opened, 'overlapping', (6, 8, 10), [(everything(whole), path, 'data', everything(whole)), (slab(whole, (0, 0, 0), (3, 8, 10)), path, 'data', slab(whole, (3, 0, 0), (3, 8, 10))),
                                                   (slab(whole, (1, 1, 1), (1, 2, 3)), 'no such file.h5', 'data', everything((1, 2, 3)))])
    file('virtual-selections', selections)

    def ends(opened, rng):
        path = source(name_of('ends'), (10, 6), maximum=(None, 6))
        u = UNLIMITED
        rows = lambda: slab((10, 6), (0, 0), (u, 6), maximum=(u, 6))
        minus = np.array(-9, '<i4')
        virtual(opened, 'two', (3, 12), [(slab((3, 12), (0, 0), (u, 6), maximum=(u, 12)), path, 'data', rows()),
                                         (slab((3, 12), (4, 6), (u, 6), maximum=(u, 12)), path, 'data', rows())], maximum=(u, 12), fill=minus)
        virtual(opened, 'missing', (3, 6), [(slab((3, 6), (0, 0), (u, 6), maximum=(u, 6)), 'no such file.h5', 'data', rows())], maximum=(u, 6), fill=minus)
        virtual(opened, 'missing beside fixed', (7, 12), [(slab((7, 12), (0, 0), (u, 6), maximum=(u, 12)), 'no such file.h5', 'data', rows()),
                                                          (slab((7, 12), (0, 6), (5, 6), maximum=(u, 12)), path, 'data', slab((10, 6), (0, 0), (5, 6)))], maximum=(u, 12), fill=minus)
        virtual(opened, 'blocks of other sizes', (3, 6), [(slab((3, 6), (1, 0), (u, 1), (5, 6), (3, 6), maximum=(u, 6)), path, 'data',
                                                           slab((10, 6), (0, 0), (u, 1), (4, 6), (2, 6), maximum=(u, 6)))], maximum=(u, 6), fill=minus)
        virtual(opened, 'columns', (6, 3), [(slab((6, 3), (0, 0), (6, u), maximum=(6, u)), path, 'data', rows())], maximum=(6, u), fill=minus)
        virtual(opened, 'behind the end', (3, 6), [(slab((3, 6), (2, 0), (u, 6), maximum=(u, 6)), path, 'data', slab((10, 6), (12, 0), (u, 6), maximum=(u, 6)))], maximum=(u, 6), fill=minus)
        virtual(opened, 'one block', (3, 6), [(slab((3, 6), (1, 0), (1, 1), (1, 1), (u, 6), maximum=(u, 6)), path, 'data', slab((10, 6), (3, 0), (1, 1), (1, 1), (u, 6), maximum=(u, 6)))], maximum=(u, 6), fill=minus)
    file('virtual-ends', ends)

    def numbered(opened, rng):
        u = UNLIMITED
        with h5py.File(name_of('numbered', '100%-1'), 'w') as other:
            for i in (0, 1, 3):
                other[f'%{i} data'] = np.arange(12, dtype='<i4') + 100 * i
        virtual(opened, 'percent', (2, 12), [(slab((2, 12), (1, 0), (u, 1), (2, 12), (1, 12), maximum=(u, 12)), name_of('numbered', '100%%-1'), '%%%b data', everything((12,)))],
                maximum=(u, 12), fill=np.array(-1, '<i4'))
        virtual(opened, 'none', (4, 12), [(slab((4, 12), (0, 0), (u, 1), (1, 12), (1, 12), maximum=(u, 12)), 'no file %b.h5', 'data', everything((12,)))], maximum=(u, 12))
        virtual(opened, 'fixed percent', (12,), [(everything((12,)), name_of('numbered', '100%%-1'), '%%3 data', everything((12,)))])
        virtual(opened, 'columns', (12, 4), [(slab((12, 4), (0, 0), (1, u), (12, 2), (12, 1), maximum=(12, u)), name_of('numbered', '100%%-1'), '%%%b data', everything((12,)))],
                maximum=(12, u), fill=np.array(-1, '<i4'))
    file('virtual-numbered', numbered)

    def stored(opened, rng):
        names = []
        for i, options in enumerate(({'compression': 'gzip', 'shuffle': True}, {'compression': 'lzf'}, {'fletcher32': True, 'maxshape': (None, None)}, {'scaleoffset': 0}, {'maxshape': (None, 30)}, {'track_times': False})):
            names.append(name_of('stored', i))
            with h5py.File(names[-1], 'w', libver=('earliest', 'latest')[i % 2]) as other:
                data = rng.integers(0, 1000, (40, 30)).astype('<i4')
                other.create_dataset('deep/data', data=data, chunks=None if 'track_times' in options else (7, 11), **options)
        virtual(opened, 'joined', (240, 30), [(slab((240, 30), (40 * i, 0), (40, 30)), name, '/deep/data', everything((40, 30))) for i, name in enumerate(names)])
        virtual(opened, 'interleaved', (240, 30), [(slab((240, 30), (i, 0), (40, 30), (6, 1)), name, 'deep/data', everything((40, 30))) for i, name in enumerate(names)])
        virtual(opened, 'every third column', (40, 60), [(slab((40, 60), (0, 10 * i), (40, 10)), name, 'deep/data', slab((40, 30), (0, 1), (40, 10), (1, 3))) for i, name in enumerate(names)])
    file('virtual-stored', stored)

    def nested(opened, rng):
        path = source(name_of('nested', 0), (10, 6), maximum=(None, 6))
        for i in range(1, 4):
            with h5py.File(name_of('nested', i), 'w', libver='latest') as other:
                virtual(other, 'data', (10, 6), [(slab((10, 6), (0, 0), (UNLIMITED, 6), maximum=(UNLIMITED, 6)), name_of('nested', i - 1), 'data', slab((10, 6), (0, 0), (UNLIMITED, 6), maximum=(UNLIMITED, 6)))],
                        maximum=(UNLIMITED, 6))
        virtual(opened, 'rows', (2, 6), [(slab((2, 6), (0, 0), (UNLIMITED, 6), maximum=(UNLIMITED, 6)), name_of('nested', 3), 'data', slab((10, 6), (4, 0), (UNLIMITED, 6), maximum=(UNLIMITED, 6)))], maximum=(UNLIMITED, 6))
        virtual(opened, 'corner', (3, 3), [(everything((3, 3)), name_of('nested', 3), 'data', slab((10, 6), (1, 1), (3, 3), (3, 2)))])
        opened['link'] = h5py.ExternalLink(name_of('nested', 3), 'data')
        virtual(opened, 'through a link', (10, 6), [(everything((10, 6)), '.', 'link', everything((10, 6)))])
    file('virtual-nested', nested)

    def many(opened, rng):
        with h5py.File(name_of('many'), 'w') as other:
            for i in range(300):
                other[f'{i}'] = np.arange(20, dtype='<i2') + 20 * i
        virtual(opened, 'rows', (300, 20), [(slab((300, 20), (299 - i, 0), (1, 20)), name_of('many'), f'{i}', everything((20,))) for i in range(300)])
        virtual(opened, 'tiles', (15, 400), [(slab((15, 400), (i % 15, 20 * (i // 15)), (1, 20)), name_of('many'), f'{i}', everything((20,))) for i in range(300)], h5t.IEEE_F32LE)
    file('virtual-many', many)

    def other_types(opened, rng):
        path = name_of('other-types')
        three = compound(24, ('a', 0, h5t.STD_I32LE), ('b', 8, h5t.IEEE_F64LE), ('c', 16, h5t.STD_U16BE))
        colours = h5t.enum_create(h5t.STD_I8LE)
        for name, number in (('RED', 1), ('GREEN', 2), ('BLUE', 3)):
            colours.enum_insert(name.encode(), number)
        others = h5t.enum_create(h5t.STD_I16BE)
        for name, number in (('BLUE', 30), ('RED', 10), ('GREEN', 20)):
            others.enum_insert(name.encode(), number)
        with h5py.File(path, 'w') as other:
            write(create(other, 'records', three, (20,)), rng.bytes(480))
            write(create(other, 'colours', colours, (6,)), bytes([1, 2, 3, 3, 2, 1]))
            other.create_dataset('words', data=np.array([b'one', b'two', b'three', b'fourteen'], 'S8'))
            other.create_dataset('variable', data=['one', 'zwei', '', 'quatre ans'], dtype=h5py.string_dtype())
            ragged = other.create_dataset('ragged', (4,), dtype=h5py.vlen_dtype('<i4'))
            for i in range(4):
                ragged[i] = np.arange(i) * 7
            other.create_dataset('wide', data=np.array([2**40, -(2**40), 300, -1, 7], '<i8'))
            other.create_dataset('arrays', data=np.arange(24, dtype='<i2').reshape(4, 6), dtype='<i2')
        virtual(opened, 'fewer fields', (20,), [(everything((20,)), path, 'records', everything((20,)))], compound(8, ('c', 0, h5t.STD_I32LE), ('a', 4, h5t.STD_I32BE)))
        virtual(opened, 'colours', (6,), [(everything((6,)), path, 'colours', everything((6,)))], others)
        virtual(opened, 'colours as numbers', (6,), [(everything((6,)), path, 'colours', everything((6,)))], h5t.STD_I32LE)
        short = h5t.C_S1.copy()
        short.set_size(5)
        short.set_strpad(h5t.STR_SPACEPAD)
        virtual(opened, 'words', (4,), [(everything((4,)), path, 'words', everything((4,)))], short)
        text = h5t.C_S1.copy()
        text.set_size(h5t.VARIABLE)
        text.set_cset(h5t.CSET_UTF8)
        virtual(opened, 'variable', (2, 4), [(slab((2, 4), (i, 0), (1, 4)), path, 'variable', everything((4,))) for i in range(2)], text)
        virtual(opened, 'ragged', (8,), [(slab((8,), (i,), (4,), (2,)), path, 'ragged', everything((4,))) for i in range(2)], h5t.vlen_create(h5t.STD_I32LE))
        virtual(opened, 'cut', (5,), [(everything((5,)), path, 'wide', everything((5,)))], h5t.STD_I8BE)
        virtual(opened, 'unsigned', (5,), [(everything((5,)), path, 'wide', everything((5,)))], h5t.STD_U16LE)
    file('virtual-other-types', other_types)


for part in (layouts, contents, plain, types, structure, virtuals):
    part()
print(f'{made} files')
