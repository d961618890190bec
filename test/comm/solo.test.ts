import { describe, expect, test } from 'vitest';
import { isH5LogError } from '../../src/base/errors.ts';
import { type Communicator, hasTimeout } from '../../src/comm/communicator.ts';
import { solo } from '../../src/comm/solo.ts';
import { conform } from './conformance.ts';

describe('one rank alone', () => {
  test('conforms', () => {
    expect(conform(solo())).toContain('bcast from every root');
  });

  test('gives copies, even of a Buffer, whose slice is a view', () => {
    const buffer = Buffer.from([1, 2, 3]);
    const [gathered] = solo().allgather(buffer);
    const sent = solo().bcast(buffer, 0);
    buffer.fill(9);
    expect(gathered).toEqual(Uint8Array.of(1, 2, 3));
    expect(sent).toEqual(Uint8Array.of(1, 2, 3));
  });

  test('throws when it is aborted', () => {
    const error = caught(() => solo().abort(4));
    expect(isH5LogError(error, 'COMM') && error.message).toContain('code 4');
  });

  test('has a timeout that split inherits', () => {
    const comm = solo();
    if (!hasTimeout(comm)) throw new Error('no timeout');
    expect(comm.timeout).toBe(Number.POSITIVE_INFINITY);
    comm.timeout = 100;
    expect((comm.split(0) as typeof comm).timeout).toBe(100);
    for (const timeout of [0, -1, Number.NaN, '5' as never]) {
      expect(
        isH5LogError(
          caught(() => (comm.timeout = timeout)),
          'OPTION',
        ),
      ).toBe(true);
    }
  });
});

describe('the conformance suite', () => {
  // Each is one mistake that a communicator could make.
  const mistakes: [string, Partial<Communicator>][] = [
    ['a rank beyond the size', { rank: 1 }],
    ['a result that is the argument', { bcast: (bytes) => bytes as Uint8Array }],
    ['a sum that starts from 0', { allreduce: (values) => values.map((value) => 0 + value) }],
    ['infinities taken for the largest number', { allreduce: (values) => values.map((v) => Math.min(v, 1.7e308)) }],
    ['exscan with the own value', { exscan: (values) => values.slice() }],
    ['gather without the root', { gather: () => [] }],
    ['allgather that loses empty messages', { allgather: (bytes) => (bytes.length === 0 ? [] : [bytes.slice()]) }],
    ['bytes lost from long messages', { bcast: (bytes) => (bytes ?? new Uint8Array()).slice(0, 1_000_000) }],
    ['no check of the root', { gather: (bytes) => [new Uint8Array(bytes)] }],
    ['use after close', { split: () => Object.assign(solo(), { close() {} }) }],
  ];

  test.each(mistakes)('notices %s', (_, mistake) => {
    expect(() => conform(broken(mistake))).toThrow(/rank \d of 1: /);
  });
});

function broken(mistake: Partial<Communicator>): Communicator {
  const comm = solo();
  return new Proxy(comm, {
    get: (_, name) => {
      const value = Reflect.get(name in mistake ? mistake : comm, name) as unknown;
      return typeof value === 'function' ? value.bind(comm) : value;
    },
  });
}

function caught(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    return error;
  }
  return undefined;
}
