# A regular file with every kind of object and type: regular-file.py PATH
import h5py, numpy as np, sys

with h5py.File(sys.argv[1], 'w') as f:
    x = f.create_dataset('x', data=np.array([1., 0., 0., 5., np.nan, -np.inf, np.inf]))
    x.attrs['units'] = 'K'
    x.attrs['range'] = np.array([1, 2, 3], dtype='i2')
    f['grid'] = np.arange(60, dtype='i4').reshape(3, 4, 5)
    f['fixed'] = np.array([b'ab', b'cd', b'efg'])
    f.create_dataset('text', data=['one', 'two', ''], dtype=h5py.string_dtype())
    f['compound'] = np.array([(1, 2.5), (3, 4.)], dtype=[('a', 'i4'), ('b', 'f8')])
    f['flags'] = np.array([True, False])
    colours = h5py.enum_dtype({'RED': 0, 'GREEN': 1}, basetype='i2')
    f.create_dataset('colours', data=np.array([0, 1, 1], dtype='i2'), dtype=colours)
    v = f.create_dataset('vlen', (2,), dtype=h5py.vlen_dtype('i4'))
    v[0] = [1, 2, 3]
    v[1] = []
    f['opaque'] = np.array([b'\x01\x02\x03', b'abc'], dtype='V3')
    f.create_dataset('references', data=np.array([x.ref, f['grid'].ref], dtype=h5py.ref_dtype), dtype=h5py.ref_dtype)
    f['null'] = h5py.Empty('f4')
    f['scalar'] = 42
    f['float32'] = np.float32([0.1, 1e30, -2.5])
    f['big'] = np.array([1, -2, 300], dtype='>i4')
    f['int64'] = np.array([2**60 + 1, -5])
    a = f.create_dataset('array', (2,), dtype=np.dtype(('i4', (3,))))
    a[...] = np.arange(6).reshape(2, 3)
    chunked = f.create_dataset('chunked', shape=(10, 12), chunks=(4, 5), maxshape=(None, 12), compression='gzip', fillvalue=-1)
    chunked[2:5, 3:9] = np.arange(18).reshape(3, 6)
    f['type'] = np.dtype('f8')
    f['soft'] = h5py.SoftLink('/x')
    f['dangling'] = h5py.SoftLink('/nowhere')
    f['external'] = h5py.ExternalLink('other.h5', '/y')
    g = f.create_group('group')
    g.attrs['depth'] = 1
    g['inner'] = np.arange(5, dtype='u1')
    g['loop'] = f['/']
    g['same'] = x
