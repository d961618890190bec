"""Prints, as JSON, the fill value of every dataset in the files named on the command line: hex in the file's type, '' if nobody set one."""
import ctypes
import json
import sys

import h5py
from h5py import h5d

maps = open('/proc/self/maps').read().split()
hdf5 = ctypes.CDLL(next(word for word in maps if 'libhdf5' in word and '_hl' not in word))


def fills(path):
    found = {}

    def visit(name, obj):
        if not isinstance(obj, h5py.Dataset):
            return
        plist, t = obj.id.get_create_plist(), obj.id.get_type()
        if plist.fill_value_defined() != h5d.FILL_VALUE_USER_DEFINED:
            found['/' + name] = ''
            return
        raw = ctypes.create_string_buffer(t.get_size())
        if hdf5.H5Pget_fill_value(ctypes.c_int64(plist.id), ctypes.c_int64(t.id), raw) < 0:
            raise OSError(name)
        found['/' + name] = raw.raw.hex()

    with h5py.File(path, 'r') as f:
        f.visititems(visit)
    return found


print(json.dumps([fills(path) for path in sys.argv[1:]]))
