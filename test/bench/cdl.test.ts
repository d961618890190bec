import { join } from 'node:path';
import { isH5LogError } from 'h5log';
import { describe, expect, test } from 'vitest';
import { parseCdl } from '../../src/bench/cdl.ts';
import { ncdump, pythonSync, withOracle } from '../oracles.ts';
import { temporaryDirectory } from '../temporary.ts';

const failure = (text: string): unknown => {
  try {
    parseCdl(text);
  } catch (error) {
    return error;
  }
  return undefined;
};

describe('a CDL header', () => {
  test('gives dimensions, variables and attributes', () => {
    const header = parseCdl(`netcdf run {
// file format: CDF-5 (big variables)
dimensions:
	time = UNLIMITED ; // (25 currently)
	x = 3 ;
variables:
	float t(time, x) ;
		t:units = "K" ;
		t:_FillValue = 1.e+20f ;
	int scalar ;

// global attributes:
		:title = "a run" ;
}
`);
    expect(header.name).toBe('run');
    expect(header.dimensions).toEqual([
      { name: 'time', size: 25, unlimited: true },
      { name: 'x', size: 3, unlimited: false },
    ]);
    expect(header.variables).toEqual([
      {
        name: 't',
        type: 'float',
        dimensions: [0, 1],
        attributes: [
          { name: 'units', value: 'K' },
          { name: '_FillValue', value: Float32Array.of(1e20) },
        ],
      },
      { name: 'scalar', type: 'int', dimensions: [], attributes: [] },
    ]);
    expect(header.attributes).toEqual([{ name: 'title', value: 'a run' }]);
  });

  test('has attributes of every type', () => {
    const { attributes } = parseCdl(`netcdf a { :b = 1b, -2b ; :ub = 200ub ; :s = -3s ; :us = 60000us ; :i = 4, 0x10 ;
      :u = 4000000000u ; :l = 12L ; :ll = -9007199254740993LL ; :ull = 18446744073709551615ull ; :wide = 5000000000 ;
      :f = 1.5f, .5f, 2.f ; :d = 1., 2.5e-3, -1e10 ; :nan = NaN, Infinity, -Infinity ; :nanf = NaNf, -Infinityf ; int64 :typed = 7 ;
      string :texts = "one", "two" ; string :text = "single" ; :empty = "" ; :lines = "first\\n",
        "second" ; :quoted = "a \\"b\\" \\\\ \\t \\x41\\101; // no comment {" ; }`);
    expect(Object.fromEntries(attributes.map(({ name, value }) => [name, value]))).toEqual({
      b: Int8Array.of(1, -2),
      ub: Uint8Array.of(200),
      s: Int16Array.of(-3),
      us: Uint16Array.of(60000),
      i: Int32Array.of(4, 16),
      u: Uint32Array.of(4000000000),
      l: Int32Array.of(12),
      ll: BigInt64Array.of(-9007199254740993n),
      ull: BigUint64Array.of(18446744073709551615n),
      wide: BigInt64Array.of(5000000000n),
      f: Float32Array.of(1.5, 0.5, 2),
      d: Float64Array.of(1, 2.5e-3, -1e10),
      nan: Float64Array.of(Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY),
      nanf: Float32Array.of(Number.NaN, Number.NEGATIVE_INFINITY),
      typed: BigInt64Array.of(7n),
      texts: ['one', 'two'],
      text: 'single',
      empty: '',
      lines: 'first\nsecond',
      quoted: 'a "b" \\ \t AA; // no comment {',
    });
  });

  test('may have odd names, several names a line, groups, data, and no variables', () => {
    const header = parseCdl(`netcdf odd\\ file {dimensions: a\\ b = 2, group = 3 ; t = unlimited ;
      variables: double x\\:y(a\\ b), group(group); x\\:y:a-b.c\\+ = 1 ; char float(t) ; float:units = "m" ; string float:more = "x" ;
      data: x\\:y = 1, 2 ; group = 1, 2, 3 ;
      group: inner { dimensions: group = 5 ; variables: int v(group, a\\ b) ; v:u = 1s ; int w(/group) ; :note = "in here" ;
        group: deep { variables: ubyte z(group) ; } } }`);
    expect(header.name).toBe('odd file');
    expect(header.dimensions.map(({ name, size }) => `${name} ${size}`)).toEqual([
      'a b 2',
      'group 3',
      't 0',
      'inner/group 5',
    ]);
    expect(header.variables.map(({ name, dimensions }) => `${name} ${dimensions.join()}`)).toEqual([
      'x:y 0',
      'group 1',
      'float 2',
      'inner/v 3,0',
      'inner/w 1',
      'inner/deep/z 3',
    ]);
    expect(header.variables[0]?.attributes).toEqual([{ name: 'a-b.c+', value: Int32Array.of(1) }]);
    expect(header.variables[2]?.attributes.map(({ name }) => name)).toEqual(['units', 'more']);
    expect(header.groups).toEqual([
      { name: 'inner', attributes: [{ name: 'note', value: 'in here' }] },
      { name: 'inner/deep', attributes: [] },
    ]);
    expect(parseCdl('netcdf nothing { }')).toMatchObject({ dimensions: [], variables: [], attributes: [] });
  });

  test.each([
    ['', 'the header ends where netcdf should be'],
    ['hdf5 a { }', 'begins with netcdf'],
    ['netcdf a { dimensions: x = 3 ;', 'the header ends'],
    ['netcdf a { dimensions: x = three ; }', 'three is not the size'],
    ['netcdf a { variables:\n\n float t(x) ; }', 'line 3 of the CDL header: there is no dimension x'],
    ['netcdf a { variables: float t ; u:units = "K" ; }', 'there is no variable u'],
    ['netcdf a { variables: float t ; int t ; }', 'a second variable t'],
    ['netcdf a { :x = 1, "a" ; }', 'neither a number nor a text'],
    ['netcdf a { :x = "a", 1 ; }', '1 is not a text'],
    ['netcdf a { :x = "open ; }', 'cannot be understood'],
    ['netcdf a { } more', 'more after the end'],
    ['netcdf a { x = 3 ; }', 'x is not expected here'],
  ])('that is wrong is refused: %j', (text, message) => {
    const error = failure(text);
    expect(isH5LogError(error, 'FORMAT')).toBe(true);
    expect((error as Error).message).toContain(message);
  });

  test('with types of its own is not supported, and says so', () => {
    const error = failure('netcdf a { types: int enum day {mon = 0} ; variables: day d ; }');
    expect(isH5LogError(error, 'UNSUPPORTED')).toBe(true);
  });
});

withOracle(['ncdump', 'python'], 'headers that ncdump prints', () => {
  test('of a file with groups, odd names and all number types', () => {
    const path = join(temporaryDirectory(), 'made.nc');
    pythonSync(
      `import h5py, numpy as np, sys
f = h5py.File(sys.argv[1], 'w', track_order=True)
f.attrs['text'] = np.bytes_('two\\nlines and a "quote"')
for t in 'i1 u1 i2 u2 i4 u4 i8 u8 f4 f8'.split():
    f.create_dataset('v ' + t, data=np.arange(4, dtype=t)).attrs['value'] = np.array([1, 3], dtype=t)
f.create_dataset('g/x+y', data=np.arange(6.).reshape(2, 3))
`,
      [path],
    );
    const text = ncdump('-h', path);
    const header = parseCdl(text);
    expect(header.attributes).toEqual([{ name: 'text', value: 'two\nlines and a "quote"' }]);
    expect(header.variables.map(({ name, type }) => `${name}: ${type}`)).toEqual([
      'v i1: byte',
      'v u1: ubyte',
      'v i2: short',
      'v u2: ushort',
      'v i4: int',
      'v u4: uint',
      'v i8: int64',
      'v u8: uint64',
      'v f4: float',
      'v f8: double',
      'g/x+y: double',
    ]);
    // The attributes have the types of their variables.
    const values = header.variables.slice(0, 10).map(({ attributes }) => attributes[0]?.value as Float64Array);
    expect(values.map((value) => Array.from(value, Number))).toEqual(values.map(() => [1, 3]));
    expect(values.map((value) => value.constructor.name)).toEqual([
      'Int8Array',
      'Uint8Array',
      'Int16Array',
      'Uint16Array',
      'Int32Array',
      'Uint32Array',
      'BigInt64Array',
      'BigUint64Array',
      'Float32Array',
      'Float64Array',
    ]);
  });
});
