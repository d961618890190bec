import { existsSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { File } from 'h5log';
import { beforeAll, expect, test } from 'vitest';
import { sessionOf } from '../../../src/api/handle.ts';
import { pythonSync, withOracle } from '../../oracles.ts';
import { folder as fixtures } from '../../original/fixtures.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { h5log, onTerminal, slow } from '../command.ts';

const folder = temporaryDirectory();
const [fresh, regular, damaged, cut] = ['fresh', 'regular', 'damaged', 'cut'].map((name) =>
  join(folder, `${name}.h5`),
) as [string, string, string, string];
let outputs = 0;
const output = (): string => join(folder, `out-${outputs++}.h5`);

const REGULAR = `
import sys, h5py, numpy as np
with h5py.File(sys.argv[1], 'w') as f: f.create_dataset('x', data=np.arange(20.0), chunks=(5,))
`;

// Commands that make another file, or look at one as a whole: how each is called, and what it says of an ordinary file.
const commands = [
  { name: 'replay', call: (file: string, out: string) => ['replay', '-j', '1', file, out], ordinary: 0, makes: true },
  { name: 'seal', call: (file: string, out: string) => ['seal', file, '--to', out], ordinary: 2, makes: true },
  { name: 'compact', call: (file: string, out: string) => ['compact', file, out], ordinary: 0, makes: true },
  { name: 'verify', call: (file: string) => ['verify', file], ordinary: 0, makes: false },
] as const;

withOracle('python', 'commands that go through a whole file', () => {
  beforeAll(() => {
    const file = File.createSync(fresh, { publish: 'never' });
    const d = file.createDataset('/g/x', { dtype: 'int32', shape: [40, 50] });
    for (let i = 0; i < 8; i++) {
      d.write(new Int32Array(500).fill(i), { start: [Math.min(i * 5, 30), 0], count: [10, 50] });
      file.flushSync();
    }
    file.closeSync();
    pythonSync(REGULAR, [regular]);
    const bytes = readFileSync(fresh);
    writeFileSync(cut, bytes);
    truncateSync(cut, bytes.length - 100);
    // The table of the last commit: whoever reads the data must stumble over it.
    const open = File.openSync(fresh);
    const { address, size } = sessionOf(open).log?.main.state.tables.at(-1) ?? { address: 0, size: 0 };
    open.closeSync();
    bytes.fill(0xff, address + 16, address + size);
    writeFileSync(damaged, bytes);
  });

  test.each(commands)('$name on a file of the original and on a fresh one', slow, async ({ call, makes }) => {
    for (const file of [join(fixtures, 'mix_2r.h5'), join(fixtures, 'subfile2_ndims_4r.h5'), fresh]) {
      const out = output();
      const { code, stdout, stderr } = await h5log(...call(file, out));
      expect({ file, code, stderr }).toEqual({ file, code: 0, stderr: '' });
      expect(stdout).not.toBe('');
      expect(existsSync(out)).toBe(makes);
    }
  });

  test.each(commands)('$name on an ordinary file', slow, async ({ call, ordinary }) => {
    const out = output();
    const { code, stderr } = await h5log(...call(regular, out));
    expect(code, stderr).toBe(ordinary);
    if (ordinary === 2) expect(stderr).toMatch(/^h5log: [A-Z_]+: .+\n$/);
  });

  test.each(commands)('$name on damaged files and on one that is missing', slow, async ({ name, call }) => {
    for (const [file, expected] of [
      [damaged, 'FORMAT'],
      [cut, 'FORMAT'],
      [join(folder, 'missing.h5'), 'NOT_FOUND'],
    ] as const) {
      const out = output();
      const { code, stdout, stderr } = await h5log(...call(file, out));
      if (name === 'verify' && expected === 'FORMAT') {
        expect({ file, code }).toEqual({ file, code: 1 });
        expect(stdout).toContain('DAMAGED');
      } else {
        expect({ file, code }).toEqual({ file, code: 2 });
        expect(stderr).toMatch(new RegExp(`^h5log: ${expected}: .+\\n$`));
      }
      expect(existsSync(out)).toBe(false);
    }
    expect(readdirSync(folder).filter((entry) => /\.new|\.lock/.test(entry))).toEqual([]);
  });

  test.each(commands)('$name says the same on a terminal as in a pipe', slow, async ({ call }) => {
    const words = (text: string): string =>
      text
        .replace(/[^\n]*\r(?!\n)/g, '')
        // biome-ignore lint/suspicious/noControlCharactersInRegex: what a terminal is told
        .replace(/\u001b\[[\d;?]*[A-Za-z]/g, '')
        .replace(/[\d.]+ (?:[kMG]?B(?:\/s)?|s)\b/g, '#')
        .replace(/out-\d+/g, 'out')
        .replaceAll('\r', '');
    const pipe = await h5log(...call(fresh, output()));
    const terminal = await onTerminal(call(fresh, output()));
    expect(terminal.code).toBe(0);
    for (const line of words(pipe.stdout).split('\n')) expect(words(terminal.stdout)).toContain(line);
  });
});
