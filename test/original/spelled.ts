/**
 * Bytes from a text: each line is hexadecimal digits, and behind a bar what they mean. `=name` stands for the eight bytes of a number
 * that is known only when the file is there, such as a file offset; `=name+12` for one that is so much larger.
 *
 * @example spelled('01 00 00 00 | number of blocks\n =ld+8 | file offset', { ld: 1024 })
 */
export function spelled(text: string, numbers: Readonly<Record<string, number>> = {}): Buffer {
  const parts = text.split('\n').map((line) => {
    const digits = (line.split('|')[0] as string).trim();
    const named = /^=(\w+)(?:\+(\d+))?$/.exec(digits);
    if (!named) return Buffer.from(digits.replaceAll(' ', ''), 'hex');
    const base = numbers[named[1] as string];
    if (base === undefined) throw new Error(`there is no number ${named[1]}`);
    return i64(base + Number(named[2] ?? 0));
  });
  return Buffer.concat(parts);
}

export function i64(...values: number[]): Buffer {
  const out = Buffer.alloc(values.length * 8);
  values.forEach((value, i) => {
    out.writeBigInt64LE(BigInt(value), i * 8);
  });
  return out;
}

export function i32(...values: number[]): Buffer {
  const out = Buffer.alloc(values.length * 4);
  values.forEach((value, i) => {
    out.writeInt32LE(value, i * 4);
  });
  return out;
}

/** An entry with its header; the size is counted. */
export function entry(id: number, flags: number, offset: number, size: number, ...body: Uint8Array[]): Buffer {
  const rest = Buffer.concat(body);
  return Buffer.concat([i32(28 + rest.length, id, flags), i64(offset, size), rest]);
}

/** A table of sections. */
export function table(...sections: readonly Uint8Array[][]): Buffer {
  const bodies = sections.map((entries) => Buffer.concat(entries));
  let end = 8 * (sections.length + 1);
  const ends = bodies.map((body) => {
    end += body.length;
    return end;
  });
  return Buffer.concat([i64(sections.length, ...ends), ...bodies]);
}
