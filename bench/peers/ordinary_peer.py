"""h5py for `npm run bench -- ordinary`.

make FOLDER ROWS          the files: datasets of ROWS x 8192 numbers of 4 bytes, rows of 3 for boxes, and many objects
read FILE DATASET TIMES   seconds of the fastest whole read
boxes FILE COUNT TIMES    seconds of the fastest run of COUNT random reads of 10 x 3
list FILE TIMES           seconds to open the file and look at all objects
The last line printed is JSON.
"""
import json, os, sys, time

import h5py, numpy as np


def make(folder, rows):
    field = (np.add.outer(np.arange(rows), np.arange(8192)) // 7 % 4096).astype('<i4')
    chunks = (min(rows, 512), 512)
    kinds = {
        'contiguous': {}, 'chunked': {'chunks': chunks}, 'deflate': {'chunks': chunks, 'compression': 'gzip', 'shuffle': True},
        'scaleoffset': {'chunks': chunks, 'scaleoffset': 0}, 'lzf': {'chunks': chunks, 'compression': 'lzf'},
    }
    for name, options in kinds.items():
        with h5py.File(os.path.join(folder, f'{name}.h5'), 'w') as f:
            f.create_dataset('x', data=field, **options)
    with h5py.File(os.path.join(folder, 'rows.h5'), 'w') as f:
        f.create_dataset('x', data=np.random.default_rng(1).random((1_000_000, 3)), chunks=(10_000, 3))
    with h5py.File(os.path.join(folder, 'objects.h5'), 'w') as f:
        for i in range(9_900):
            f.create_dataset(f'group {i % 100}/dataset {i}', data=i)
    return True


def best(times, run):
    return min(run() for _ in range(times))


def read(path, name):
    with h5py.File(path, 'r') as f:
        began = time.perf_counter()
        f[name][...]
        return time.perf_counter() - began


def boxes(path, count):
    starts = np.random.default_rng(2).integers(0, 999_990, count)
    with h5py.File(path, 'r') as f:
        x = f['x']
        began = time.perf_counter()
        for start in starts:
            x[start:start + 10]
        return time.perf_counter() - began


def listed(path):
    began = time.perf_counter()
    with h5py.File(path, 'r') as f:
        found = []
        f.visititems(lambda name, o: found.append((name, getattr(o, 'shape', None))))
    assert len(found) == 10_000
    return time.perf_counter() - began


command, *args = sys.argv[1:]
if command == 'make':
    result = make(args[0], int(args[1]))
elif command == 'read':
    result = best(int(args[2]), lambda: read(args[0], args[1]))
elif command == 'boxes':
    result = best(int(args[2]), lambda: boxes(args[0], int(args[1])))
else:
    result = best(int(args[1]), lambda: listed(args[0]))
print(json.dumps(result))
