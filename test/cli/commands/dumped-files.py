# Ordinary files whose dumps are compared with those of h5dump: dumped-files.py FOLDER
import h5py, numpy as np, os, sys

def open_file(name, **options):
    return h5py.File(os.path.join(sys.argv[1], name), 'w', **options)

with open_file('numbers.h5') as f:
    for kind in ['i1', 'i2', '<i4', '>i4', 'i8', 'u1', 'u2', 'u4', 'u8']:
        f[kind.replace('<', 'l').replace('>', 'b')] = np.arange(100).astype(kind).reshape(4, 25)
    f['large'] = np.array([2**62, -5, -2**63])
    f['unsigned'] = np.arange(3, dtype='u8') + 2**63
    # Numbers that six digits tell: h5dump prints no more.
    f['float64'] = np.array([0, 1, -1, 0.1, 1e6, 1.5e7, 1e-5, 1e-4, 1.25e-7, np.nan, np.inf, -np.inf, 1e300, -0.0, 123456, 0.333333, 99999.5, 1e15, 1e16, 1e21])
    f['float32'] = np.array([0.1, 1e10, 2.5, 1e-10, 3e38, 65536], dtype='f4')
    f['bigfloat'] = np.array([1.5, -2], dtype='>f8')
    for n in range(1, 12):
        f['wide/%02d' % n] = np.full(60, int('1' * n))
        f['end/%02d' % n] = np.array([111] * 13 + [10 ** (n - 1)])
    deep = f.create_group('a/b/c/d/e')
    for n in range(1, 8):
        deep['w%d' % n] = np.full((2, 30), int('1' * n))
        deep['w%d' % n].attrs['same'] = np.full(60, int('1' * n))
    f['cube'] = np.arange(24).reshape(2, 3, 4)
    f['five'] = np.arange(16).reshape(2, 2, 2, 1, 2)
    f['scalar'] = 3.5
    f['zero'] = np.zeros((0, 3))
    f['null'] = h5py.Empty('i4')
    f.create_dataset('grows', data=np.arange(5), maxshape=(None,), chunks=(2,), compression='gzip')
    f.create_dataset('filled', shape=(10, 12), chunks=(4, 5), maxshape=(None, 12), compression='gzip', shuffle=True, fletcher32=True, fillvalue=-1)[2:5, 3:9] = 7

with open_file('types.h5') as f:
    f['bool'] = np.array([True, False])
    e = h5py.enum_dtype({'RED': 0, 'GREEN': 1, 'BLUE': 42}, basetype='i2')
    f.create_dataset('enum', data=np.array([0, 1, 42, 7], dtype='i2'), dtype=e)
    f['text'] = np.array([b'abc', b'defgh', b'ij-kl'], dtype='S5')
    f.create_dataset('words', data=['word %d' % i for i in range(30)], dtype=h5py.string_dtype())
    f.create_dataset('long', data=['w' * 90, 'ab', 'c' * 90, 'd', 'e'], dtype=h5py.string_dtype('ascii'))
    point = np.dtype([('x', 'i4'), ('y', 'f8')])
    f['points'] = np.array([(1, 2.5), (3, 4)], dtype=point)
    f['plane'] = np.zeros((2, 2), dtype=point)
    f['point'] = np.array((1, 2.5), dtype=point)
    nested = np.dtype([('a', 'i4'), ('s', 'S3'), ('v', 'f4', (3,)), ('m', 'i4', (2, 3)), ('w', 'i4', (40,)), ('n', [('p', point), ('q', 'i2')])])
    z = np.zeros(2, nested)
    z['s'] = b'abc'; z['m'] = np.arange(6).reshape(2, 3); z['w'] = np.arange(40) * 100; z['n']['p']['y'] = 0.5
    f['nested'] = z
    f['complex'] = np.array([1 + 2j, 3])
    f.create_dataset('pairs', (30,), dtype=np.dtype(('i4', (2,))))[...] = np.arange(60).reshape(30, 2)
    f.create_dataset('rows', (2,), dtype=np.dtype(('i4', (2, 3))))[...] = np.arange(12).reshape(2, 2, 3)
    f.create_dataset('solid', (2,), dtype=np.dtype(('i4', (2, 2, 30))))[...] = np.arange(240).reshape(2, 2, 2, 30)
    f.create_dataset('lists', (2,), dtype=np.dtype((point, (2,))))
    v = f.create_dataset('vlen', (4,), dtype=h5py.vlen_dtype('i4'))
    v[0], v[1], v[3] = np.arange(60), [1] * 30, [7]
    f['opaque'] = np.array([bytes(range(9)), bytes(9)], dtype='V9')
    f['byte'] = np.array([b'\x01', b'\xff'], dtype='V1')
    space = h5py.h5s.create_simple((3,))
    for name, type, kind in (('b8', h5py.h5t.STD_B8LE, 'u1'), ('b16', h5py.h5t.STD_B16LE, '<u2'), ('b16b', h5py.h5t.STD_B16BE, '>u2'), ('b32', h5py.h5t.STD_B32LE, '<u4')):
        bits = h5py.h5d.create(f.id, name.encode(), type, space)
        bits.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([1, 0x23, 0xff], dtype=kind), mtype=type)

with open_file('structure.h5') as f:
    f.attrs['title'] = 'a title'
    f.attrs['numbers'] = np.arange(60, dtype='i4').reshape(2, 30)
    f.attrs['empty'] = h5py.Empty('f4')
    f.attrs['none'] = np.zeros((0, 2))
    f.attrs['Words'] = ['x', 'yy']
    f.attrs['pair'] = np.array((1, 2.5), dtype=[('a', 'i4'), ('b', 'f8')])
    x = f.create_dataset('x', data=np.arange(3))
    x.attrs['units'] = 'K'
    f.create_group('g/empty')
    f['g/z'], f['g/a'], f['g/Z'] = 1, 2, 3
    f['g'].attrs['depth'] = 1
    f['same'] = x
    f['g/loop'] = f['/']
    f['later'] = f['g']
    f['soft'] = h5py.SoftLink('/x')
    f['dangling'] = h5py.SoftLink('/nowhere/at all')
    f['outside'] = h5py.ExternalLink('other.h5', '/y')
    f['type'] = np.dtype('i4')
    f['type'].attrs['note'] = 1
    f['type again'] = f['type']
    f['record'] = np.dtype([('a', 'i4'), ('b', 'f4')])
    f['name'] = np.dtype('S5')
    d = f.create_dataset('a typed one', data=np.arange(3), dtype=f['type'])
    d.attrs.create('t', 5, dtype=f['type'])
    f.create_dataset('records', (2,), dtype=f['record'])
    order = f.create_group('order', track_order=True)
    order['z'], order['a'] = 1, 2

with open_file('latest.h5', libver='latest', track_order=True) as f:
    for i in range(40):
        f['d%02d' % (39 - i)] = i
    for i in range(20):
        f.attrs['a%02d' % (19 - i)] = i
    f.create_dataset('one', data=np.arange(20.), chunks=(3,), maxshape=(None,))
    f.create_dataset('two', data=np.arange(20).reshape(4, 5), chunks=(2, 2), maxshape=(None, None))

# What h5log prints otherwise, on purpose.
with open_file('different.h5') as f:
    f['digits'] = np.array([1 / 3, 0.1 + 0.2, 1234567, 1e-5 / 3])
    f['single'] = np.array([1 / 3, 16777216], dtype='f4')
    f['half'] = np.array([0.1, 2.5], dtype='f2')
    f['padded'] = np.array([b'ab', b'c'], dtype='S4')
    f.create_dataset('text', data=['a "b" \\', 'gr\u00fc\u00df', 'two\nlines\t.'], dtype=h5py.string_dtype())
    f.create_dataset('references', data=np.array([f['digits'].ref, f.ref], dtype=h5py.ref_dtype), dtype=h5py.ref_dtype)
    f.create_dataset('field', shape=(2, 2), dtype=[('only', 'i4')])
