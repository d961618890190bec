"""What corpus.py needs of libhdf5 beyond h5py, and the description of a file as JSON.

A description has everything that a reader should find:

{"file", "userblock", "objects": [...], "links": [...]}

object:     {"path", "kind": "group" | "dataset" | "datatype", "attributes": [...], and for datasets
             "type", "shape" (null: NULL dataspace), "maxShape" (-1: unlimited), "layout", "chunks", "filters", "values", "raw"}
attribute:  {"name", "type", "shape", "values"}
link:       {"path", "kind": "soft" | "external", "target", "file", "dataset": values or null}

Values are a flat list in row-major order, each value in one form:
  integer, enum, bit field   "-12"                decimal digits
  float                      "f3ff0000000000000"  the bits of the float64, "fnan" for every NaN
  string                     {"s": "text"}
  opaque                     {"b": base64}
  compound                   {"c": [values of the members]}
  array, variable length     {"a": [values]}
  object reference           {"r": "/path"}       null: never set
  region reference           {"g": "/path", "boxes": [[start, count], ...] or "points": [...]}
"raw" is base64 of the elements in the file's own type, without types that point into heaps.
"""
import base64
import ctypes
import json
import struct
from fractions import Fraction

import h5py
from h5py import h5a, h5d, h5i, h5o, h5s, h5t

hid = ctypes.c_int64


def libhdf5():
    with open('/proc/self/maps') as maps:
        for line in maps:
            path = line.split()[-1]
            if 'libhdf5' in path and '_hl' not in path and 'cpp' not in path:
                return ctypes.CDLL(path)
    raise RuntimeError('libhdf5 not found in /proc/self/maps')


lib = libhdf5()
lib.H5Dread.argtypes = lib.H5Dwrite.argtypes = [hid, hid, hid, hid, hid, ctypes.c_void_p]
lib.H5Aread.argtypes = lib.H5Awrite.argtypes = [hid, hid, ctypes.c_void_p]
lib.H5Pset_fill_value.argtypes = [hid, hid, ctypes.c_void_p]
lib.H5Pset_chunk_opts.argtypes = [hid, ctypes.c_uint]
lib.H5Pset_shared_mesg_nindexes.argtypes = [hid, ctypes.c_uint]
lib.H5Pset_shared_mesg_index.argtypes = [hid, ctypes.c_uint, ctypes.c_uint, ctypes.c_uint]
lib.H5Pset_file_space_strategy.argtypes = [hid, ctypes.c_int, ctypes.c_bool, ctypes.c_uint64]
lib.H5Pset_sym_k.argtypes = [hid, ctypes.c_uint, ctypes.c_uint]
lib.H5Pset_istore_k.argtypes = [hid, ctypes.c_uint]
lib.H5Rdereference2.argtypes = [hid, hid, ctypes.c_int, ctypes.c_void_p]
lib.H5Rdereference2.restype = hid
lib.H5Rget_region.argtypes = [hid, ctypes.c_int, ctypes.c_void_p]
lib.H5Rget_region.restype = hid
lib.H5Iget_name.argtypes = [hid, ctypes.c_char_p, ctypes.c_size_t]
lib.H5Iget_name.restype = ctypes.c_ssize_t
lib.H5Pget_filter2.argtypes = [hid, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t,
                               ctypes.c_char_p, ctypes.c_void_p]
lib.H5Tset_precision.argtypes = lib.H5Tset_size.argtypes = [hid, ctypes.c_size_t]
lib.H5Tget_precision.argtypes = [hid]
lib.H5Tget_precision.restype = ctypes.c_size_t
lib.H5Tset_offset.argtypes = [hid, ctypes.c_size_t]
lib.H5Tget_offset.argtypes = [hid]


def check(status):
    if status < 0:
        raise RuntimeError('libhdf5 refused')
    return status


def write(dataset, bytes, type=None):
    """Writes bytes that are in the type of the dataset, or in another."""
    # Kept in a variable: h5py closes a type that nobody holds.
    held = type or dataset.get_type()
    check(lib.H5Dwrite(dataset.id, held.id, 0, 0, 0, bytes))


def read(dataset):
    """The elements, in the type of the dataset; those that point into heaps as they are in memory."""
    type = dataset.get_type()
    buffer = ctypes.create_string_buffer(max(1, type.get_size() * dataset.get_space().get_simple_extent_npoints()))
    check(lib.H5Dread(dataset.id, type.id, 0, 0, 0, buffer))
    return type, buffer


def text(bytes):
    return base64.b64encode(bytes).decode()


# ---------------------------------------------------------------- values

def integer(type, bytes):
    little = type.get_order() != h5t.ORDER_BE
    whole = int.from_bytes(bytes, 'little' if little else 'big')
    bits = lib.H5Tget_precision(type.id)
    value = (whole >> lib.H5Tget_offset(type.id)) & ((1 << bits) - 1)
    signed = type.get_class() == h5t.INTEGER and type.get_sign() == h5t.SGN_2
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def number(type, bytes):
    """A float of any layout, exactly, then rounded to float64."""
    whole = int.from_bytes(bytes, 'little' if type.get_order() == h5t.ORDER_LE else 'big')
    sign_at, exponent_at, exponent_bits, mantissa_at, mantissa_bits = type.get_fields()
    mantissa = (whole >> mantissa_at) & ((1 << mantissa_bits) - 1)
    exponent = (whole >> exponent_at) & ((1 << exponent_bits) - 1)
    negative = whole >> sign_at & 1
    implied = type.get_norm() == h5t.NORM_IMPLIED
    if exponent == (1 << exponent_bits) - 1:
        fraction = mantissa if implied else mantissa & ((1 << (mantissa_bits - 1)) - 1)
        return float('nan') if fraction else -float('inf') if negative else float('inf')
    scale = exponent - type.get_ebias()
    if implied:
        value = Fraction(mantissa, 1 << mantissa_bits)
        value = (value + 1) * Fraction(2) ** scale if exponent else value * Fraction(2) ** (scale + 1)
    else:
        value = Fraction(mantissa, 1 << (mantissa_bits - 1)) * Fraction(2) ** (scale if exponent else scale + 1)
    try:
        result = float(value)
    except OverflowError:
        result = float('inf')
    return -result if negative else result


def float_text(value):
    return 'fnan' if value != value else 'f' + struct.pack('>d', value).hex()


def string(type, bytes):
    pad = type.get_strpad()
    if pad == h5t.STR_NULLTERM:
        bytes = bytes.split(b'\0')[0]
    elif pad == h5t.STR_NULLPAD:
        bytes = bytes.rstrip(b'\0')
    else:
        bytes = bytes.rstrip(b' ').rstrip(b'\0')
    return {'s': bytes.decode('utf-8')}


def name_of(id):
    buffer = ctypes.create_string_buffer(4096)
    check(lib.H5Iget_name(id, buffer, 4096))
    return buffer.value.decode()


def reference(file, type, bytes):
    if not any(bytes):
        return {'r': None} if type.get_size() == 8 else {'g': None}
    if type.get_size() == 8:
        return {'r': name_of(check(lib.H5Rdereference2(file.id.id, 0, 0, bytes)))}
    path = name_of(check(lib.H5Rdereference2(file.id.id, 0, 1, bytes)))
    space = h5s.SpaceID(check(lib.H5Rget_region(file.id.id, 1, bytes)))
    if space.get_select_type() == h5s.SEL_POINTS:
        return {'g': path, 'points': space.get_select_elem_pointlist().tolist()}
    if space.get_select_type() == h5s.SEL_ALL:
        return {'g': path, 'boxes': [[[0] * len(space.shape), list(space.shape)]]}
    if space.get_select_npoints() == 0:
        return {'g': path, 'boxes': []}
    boxes = space.get_select_hyper_blocklist()
    return {'g': path, 'boxes': sorted([low.tolist(), (high - low + 1).tolist()] for low, high in boxes)}


def value(file, type, bytes):
    """One element in its form for JSON."""
    kind = type.get_class()
    if kind in (h5t.INTEGER, h5t.BITFIELD):
        return str(integer(type, bytes))
    if kind == h5t.ENUM:
        return str(integer(type.get_super(), bytes))
    if kind == h5t.FLOAT:
        return float_text(number(type, bytes))
    if kind == h5t.STRING:
        if not type.is_variable_str():
            return string(type, bytes)
        content = ctypes.c_char_p(int.from_bytes(bytes, 'little')).value
        return {'s': (content or b'').decode('utf-8')}
    if kind == h5t.OPAQUE:
        return {'b': text(bytes)}
    if kind == h5t.COMPOUND:
        members = []
        for i in range(type.get_nmembers()):
            member, at = type.get_member_type(i), type.get_member_offset(i)
            members.append(value(file, member, bytes[at:at + member.get_size()]))
        return {'c': members}
    if kind == h5t.ARRAY:
        return {'a': values(file, type.get_super(), bytes)}
    if kind == h5t.VLEN:
        length, pointer = struct.unpack('<QQ', bytes)
        base = type.get_super()
        content = ctypes.string_at(pointer, length * base.get_size()) if length else b''
        return {'a': values(file, base, content)}
    if kind == h5t.REFERENCE:
        return reference(file, type, bytes)
    raise RuntimeError(f'class {kind}')


def values(file, type, bytes):
    size = type.get_size()
    return [value(file, type, bytes[at:at + size]) for at in range(0, len(bytes), size)]


# ---------------------------------------------------------------- types

ORDERS = {h5t.ORDER_LE: 'little', h5t.ORDER_BE: 'big', h5t.ORDER_NONE: 'none'}
CLASSES = {h5t.INTEGER: 'integer', h5t.FLOAT: 'float', h5t.STRING: 'string', h5t.BITFIELD: 'bitfield', h5t.OPAQUE: 'opaque',
           h5t.COMPOUND: 'compound', h5t.REFERENCE: 'reference', h5t.ENUM: 'enum', h5t.VLEN: 'vlen', h5t.ARRAY: 'array'}
PADS = {h5t.STR_NULLTERM: 'terminated', h5t.STR_NULLPAD: 'padded', h5t.STR_SPACEPAD: 'space'}


def described(type):
    kind = type.get_class()
    text = {'class': CLASSES[kind]}
    if kind == h5t.STRING:
        text['length'] = None if type.is_variable_str() else type.get_size()
        text['pad'] = PADS[type.get_strpad()]
        text['charset'] = 'utf8' if type.get_cset() == h5t.CSET_UTF8 else 'ascii'
    elif kind in (h5t.INTEGER, h5t.FLOAT, h5t.BITFIELD):
        text.update(size=type.get_size(), order=ORDERS[type.get_order()], precision=lib.H5Tget_precision(type.id),
                    offset=lib.H5Tget_offset(type.id))
        if kind == h5t.INTEGER:
            text['signed'] = type.get_sign() == h5t.SGN_2
    elif kind == h5t.OPAQUE:
        text.update(size=type.get_size(), tag=type.get_tag().decode())
    elif kind == h5t.COMPOUND:
        text['members'] = [{'name': type.get_member_name(i).decode(), 'type': described(type.get_member_type(i))}
                           for i in range(type.get_nmembers())]
    elif kind == h5t.ENUM:
        text['base'] = described(type.get_super())
        text['members'] = {type.get_member_name(i).decode(): str(type.get_member_value(i)) for i in range(type.get_nmembers())}
    elif kind == h5t.ARRAY:
        text.update(shape=list(type.get_array_dims()), base=described(type.get_super()))
    elif kind == h5t.VLEN:
        text['base'] = described(type.get_super())
    elif kind == h5t.REFERENCE:
        text['to'] = 'object' if type.equal(h5t.STD_REF_OBJ) else 'region'
    return text


def points_into_heaps(type):
    return type.detect_class(h5t.VLEN) or type.detect_class(h5t.REFERENCE) or has_long_string(type)


def has_long_string(type):
    kind = type.get_class()
    if kind == h5t.STRING:
        return type.is_variable_str()
    if kind == h5t.COMPOUND:
        return any(has_long_string(type.get_member_type(i)) for i in range(type.get_nmembers()))
    return kind in (h5t.ARRAY, h5t.VLEN) and has_long_string(type.get_super())


# ---------------------------------------------------------------- objects

def shape_of(space):
    kind = space.get_simple_extent_type()
    return None if kind == h5s.NULL else list(space.get_simple_extent_dims()) if kind == h5s.SIMPLE else []


LAYOUTS = {h5d.COMPACT: 'compact', h5d.CONTIGUOUS: 'contiguous', h5d.CHUNKED: 'chunked', h5d.VIRTUAL: 'virtual'}


def filters(plist):
    found = []
    for i in range(plist.get_nfilters()):
        flags, config, count, numbers = ctypes.c_uint(), ctypes.c_uint(), ctypes.c_size_t(256), (ctypes.c_uint * 256)()
        name = ctypes.create_string_buffer(256)
        id = lib.H5Pget_filter2(plist.id, i, ctypes.byref(flags), ctypes.byref(count), numbers, 256, name, ctypes.byref(config))
        found.append({'id': check(id), 'name': name.value.decode(), 'optional': bool(flags.value & 1),
                      'parameters': list(numbers[:count.value])})
    return found


def dataset_of(file, id):
    space, plist = id.get_space(), id.get_create_plist()
    type, buffer = read(id)
    shape = shape_of(space)
    points = 0 if shape is None else space.get_simple_extent_npoints()
    bytes = buffer.raw[:points * type.get_size()]
    simple = bool(shape)
    found = {
        'type': described(type),
        'shape': shape,
        'maxShape': [-1 if n == h5s.UNLIMITED else n for n in space.get_simple_extent_dims(True)] if simple else shape,
        'layout': 'external' if plist.get_external_count() else LAYOUTS[plist.get_layout()],
        'chunks': list(plist.get_chunk()) if plist.get_layout() == h5d.CHUNKED else None,
        'filters': filters(plist),
        'values': values(file, type, bytes),
    }
    if not points_into_heaps(type):
        found['raw'] = text(bytes)
    return found


def attributes_of(file, id):
    found = []
    for i in range(h5a.get_num_attrs(id)):
        attribute = h5a.open(id, index=i)
        type, space = attribute.get_type(), attribute.get_space()
        shape = shape_of(space)
        points = 0 if shape is None else space.get_simple_extent_npoints()
        buffer = ctypes.create_string_buffer(max(1, points * type.get_size()))
        if points:
            check(lib.H5Aread(attribute.id, type.id, buffer))
        content = values(file, type, buffer.raw[:points * type.get_size()])
        found.append({'name': attribute.name.decode(), 'type': described(type), 'shape': shape, 'values': content})
    return sorted(found, key=lambda attribute: attribute['name'])


def object_of(file, path, id):
    kind = {h5i.GROUP: 'group', h5i.DATASET: 'dataset', h5i.DATATYPE: 'datatype'}[h5i.get_type(id)]
    found = {'path': path, 'kind': kind, 'attributes': attributes_of(file, id)}
    if kind == 'dataset':
        found.update(dataset_of(file, id))
    if kind == 'datatype':
        found['type'] = described(id)
    return found


def describe(name):
    """The description of a file, as text."""
    with h5py.File(name, 'r') as file:
        objects, links = [object_of(file, '/', h5o.open(file.id, b'/'))], []

        def visit(group, prefix, inside):
            for name in group:
                path = f'{prefix}{name}'
                link = group.get(name, getlink=True)
                if isinstance(link, h5py.HardLink):
                    id = h5o.open(group.id, name.encode())
                    objects.append(object_of(file, path, id))
                    # A group may be its own grandchild.
                    address = h5o.get_info(id).addr
                    if h5i.get_type(id) == h5i.GROUP and address not in inside:
                        visit(h5py.Group(id), path + '/', inside | {address})
                    continue
                kind = 'soft' if isinstance(link, h5py.SoftLink) else 'external'
                found = {'path': path, 'kind': kind, 'target': link.path}
                if kind == 'external':
                    found['file'] = link.filename
                try:
                    id = h5o.open(group.id, name.encode())
                    dataset = dataset_of(file, id)['values'] if h5i.get_type(id) == h5i.DATASET else None
                    found.update(dangling=False, dataset=dataset)
                except (KeyError, RuntimeError, OSError):
                    found['dangling'] = True
                links.append(found)

        visit(file['/'], '/', {h5o.get_info(file.id).addr})
        return json.dumps({'file': name, 'userblock': file.userblock_size, 'objects': objects, 'links': links})
