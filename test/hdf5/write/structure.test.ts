import { describe, expect, test } from 'vitest';
import type { ObjectNode } from '../../../src/hdf5/graph/object-node.ts';
import { SCALAR_SPACE } from '../../../src/hdf5/messages/dataspace.ts';
import * as MESSAGE_FLAG from '../../../src/hdf5/messages/message-flags.ts';
import { isKnownMessage } from '../../../src/hdf5/messages/message-types.ts';
import { setAttribute } from '../../../src/hdf5/write/attributes.ts';
import { Edited } from '../edited.ts';
import { Fixture } from '../fixture.ts';

/** A file of libhdf5's test suite without the objects that may not even be opened. */
function withUnknownMessages(): Uint8Array {
  const fixture = new Fixture('releases/tbogus');
  const edited = fixture.damaged((bytes) => {
    // Of the messages of type 26, all of them in a group of their own, and of type 9, before it: the flags behind type and size.
    for (let at = 800; at < bytes.length; at += 8) {
      const type = (bytes[at] as number) | ((bytes[at + 1] as number) << 8);
      if ((type === 9 || type === 26) && bytes[at + 2] === 8 && bytes[at + 4] === MESSAGE_FLAG.failIfUnknown)
        bytes[at + 4] = 0;
    }
  });
  return edited.bytes;
}

describe('an object with a message that nobody knows', () => {
  const open = (path: string): [Edited, ObjectNode] => {
    const edited = Edited.open(withUnknownMessages());
    const node = edited.run(edited.structure.lookup(edited.structure.root, path));
    if (!node) throw new Error(`no ${path}`);
    return [edited, node];
  };
  const set = (edited: Edited, node: ObjectNode): void =>
    edited.run(setAttribute(edited.structure, node, 'note', 'int32', SCALAR_SPACE, 7));
  const unknown = (node: ObjectNode) => node.otherMessages.find(({ type }) => !isKnownMessage(type));

  test.each(['/Dataset1', '/group/Dataset1'])('%s: keeps it when it is changed', (path) => {
    const [edited, node] = open(path);
    const before = unknown(node);
    set(edited, node);
    const again = edited.reopened();
    const after = unknown(again.run(again.structure.lookup(again.structure.root, path)) as ObjectNode);
    expect(after).toMatchObject({ type: before?.type, flags: 0, bytes: before?.bytes });
  });

  test.each(['/Dataset2', '/group/Dataset2'])('%s: is not changed if the message forbids it', (path) => {
    const [edited, node] = open(path);
    expect(unknown(node)?.flags).toBe(MESSAGE_FLAG.failIfUnknownOnWrite);
    expect(() => set(edited, node)).toThrow(expect.objectContaining({ code: 'UNSUPPORTED' }));
  });

  test.each(['/Dataset4', '/group/Dataset4'])(
    '%s: is marked when it is changed, if the message asks for it',
    (path) => {
      const [edited, node] = open(path);
      expect(unknown(node)?.flags).toBe(MESSAGE_FLAG.markIfUnknown);
      set(edited, node);
      const again = edited.reopened();
      const changed = again.run(again.structure.lookup(again.structure.root, path)) as ObjectNode;
      expect(unknown(changed)?.flags).toBe(MESSAGE_FLAG.markIfUnknown | MESSAGE_FLAG.wasUnknown);
      expect(again.run(again.structure.attribute(changed, 'note'))).toBe(7);
    },
  );
});
