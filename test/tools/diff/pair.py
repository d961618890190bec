# Two regular files with the same datasets and random values, mostly the same: diff-pair.py A B SEED
import h5py, numpy as np, sys

a, b, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
rng = np.random.default_rng(seed)
types = ['i1', 'u1', 'i2', '>i2', 'u2', 'i4', 'u4', 'i8', 'f4', '>f4', 'f8', 'S5']
with h5py.File(a, 'w') as f, h5py.File(b, 'w') as g:
    for n, kind in enumerate(types * 2):
        shape = tuple(int(s) for s in rng.integers(1, 7, size=rng.integers(0, 4)))
        if kind.startswith('S'):
            x = np.array(rng.choice([b'ab', b'cd', b'xyz'], size=shape), dtype=kind)
            y = np.where(rng.random(shape) < 0.8, x, np.array(b'q', dtype=kind)).astype(kind)
        else:
            x = rng.integers(0, 100, size=shape).astype(kind)
            y = np.where(rng.random(shape) < 0.7, x, x + rng.integers(0, 9, size=shape)).astype(kind)
            if 'f' in kind and x.size > 2:
                x.flat[0] = np.nan
                y.flat[0] = np.nan
                x.flat[1] = np.nan
                x.flat[2] = np.inf
                y.flat[2] = np.inf
        for file, data in ((f, x), (g, y)):
            d = file.create_dataset(f'd{n}', data=data)
            d.attrs['same'] = 1
