"""Makes ordinary files for programs that change them: base.py FOLDER COUNT SEED. Values are small whole numbers."""
import sys
import numpy as np
import h5py
from h5py import h5d, h5p, h5s, h5t

folder, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def numbers(rng, shape, dtype):
    return rng.integers(0, 100, shape).astype(dtype)


def low_level(f, name, data, layout=None, early=False, chunks=None, maxshape=None):
    p = h5p.create(h5p.DATASET_CREATE)
    if chunks:
        p.set_chunk(chunks)
    elif layout is not None:
        p.set_layout(layout)
    if early:
        p.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    space = h5s.create_simple(data.shape, maxshape or data.shape)
    d = h5d.create(f.id, name.encode(), h5t.py_create(data.dtype), space, p)
    d.write(h5s.ALL, h5s.ALL, data)


FILTERS = [
    {},
    {"compression": "gzip", "shuffle": True},
    {"fletcher32": True},
    {"compression": "lzf"},
    {"compression": "gzip", "fletcher32": True, "shuffle": True},
    {"scaleoffset": 0},
]
TYPES = ["i1", "u2", "<i4", ">i4", "f4", "f8", ">f8", "i8"]

for i in range(count):
    rng = np.random.default_rng([seed, i])
    libver = ["earliest", "latest"][i % 2]
    with h5py.File("%s/%d.h5" % (folder, i), "w", libver=libver) as f:
        pick = lambda list: list[rng.integers(len(list))]
        side = lambda: int(rng.integers(1, 12))
        f.create_dataset("contiguous", data=numbers(rng, (side(), side()), pick(TYPES)))
        f["scalar"] = np.float64(3)
        f.create_dataset("unwritten", (side(), side()), pick(TYPES), fillvalue=7)
        low_level(f, "compact", numbers(rng, (side(),), "i4"), h5d.COMPACT)
        low_level(f, "implicit", numbers(rng, (2 + side(), 1 + side()), "f4"), early=True, chunks=(3, 2))
        n, m = side(), side()
        f.create_dataset("single", data=numbers(rng, (n, m), "f8"), chunks=(n, m), **pick(FILTERS[:4]))
        f.create_dataset("fixed", data=numbers(rng, (n + 5, m), "i4"), chunks=(2, 3) if m > 2 else (2, 1), **pick(FILTERS))
        f.create_dataset("one", data=numbers(rng, (n, m), pick(TYPES)), chunks=(3, m), maxshape=(None, m), fillvalue=5, **pick(FILTERS[:4]))
        f.create_dataset("both", data=numbers(rng, (n, m), "i4"), chunks=(2, 4), maxshape=(None, None), **pick(FILTERS))
        f.create_dataset("limited", data=numbers(rng, (n, 3, 2), "i2"), chunks=(2, 2, 2), maxshape=(n + 9, 3, 8), **pick(FILTERS[:3]))
        f.create_dataset("words", data=[str(k) * k for k in range(n)], dtype=h5py.string_dtype(), chunks=(4,), maxshape=(None,))
        f.create_dataset("texts", data=["%d" % k for k in range(n)], dtype=h5py.string_dtype())
        f.create_group("group/inner").attrs["a"] = 1
        f["group/inner/d"] = np.arange(3, dtype="i4")
        if i % 20 == 7:
            f.create_dataset("large", data=numbers(rng, (400, 350), "f8"))
