"""Writes files as the original Log VOL lays them out, with what is in them: python - FOLDER SEED COUNT.

Nothing of h5log takes part. h5py makes the HDF5 objects; log data and tables are put at their file offsets as the original does
with MPI-IO. The contents are worked out by numpy from the list of writes alone. Prints one JSON line a file.
"""
import json
import os
import random
import struct
import sys
import zlib

import h5py
import numpy as np
from h5py import h5a, h5d, h5p, h5s, h5t

MUL, ENC, REF, REC = 0x01, 0x04, 0x10, 0x20
TYPES = ['<i1', '<u1', '<i2', '>i2', '<u2', '<i4', '>i4', '<u4', '<f4', '>f4', '<i8', '<u8', '<f8', '>f8']


class Anchor:
    def __init__(self, rng, number, name):
        self.id, self.name = number, name
        rank = rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 4])
        self.dims = [rng.randint(1, 6) for _ in range(rank)]
        self.max = [rng.choice([n, n, n + rng.randint(0, 4), None]) for n in self.dims]
        if rank and rng.random() < 0.5:
            self.max[0] = None
        self.dtype = np.dtype(rng.choice(TYPES))
        self.fill = None if rng.random() < 0.5 else rng.randint(1, 100)
        self.deflate = rng.random() < 0.12
        self.deleted = False

    @property
    def records(self):
        return len(self.max) > 0 and self.max[0] is None


def box(rng, dims, slack):
    """A box of at least one element, perhaps beyond the current extent."""
    start, count = [], []
    for n in dims:
        high = n + slack
        a = rng.randint(0, max(0, high - 1))
        start.append(a)
        count.append(rng.randint(1, max(1, high - a)))
    return start, count


def strided(rng, dims):
    """What a strided hyperslab becomes: blocks in the order of their starts."""
    axes = []
    for n in dims:
        stride, width = rng.randint(2, 3), 1
        axes.append([(a, min(width, n - a)) for a in range(rng.randint(0, n - 1), n, stride)][:3])
    blocks = [([], [])]
    for axis in axes:
        blocks = [(s + [a], c + [w]) for s, c in blocks for a, w in axis]
    return blocks


def selection(rng, anchor):
    dims = anchor.dims
    kind = rng.random()
    if not dims:
        return [([], [])] * (1 if kind < 0.7 else rng.randint(2, 4))
    if any(n == 0 for n in dims):
        return [box(rng, dims, 2)]
    if kind < 0.25:
        return [([0] * len(dims), list(dims))]
    if kind < 0.45:
        return [box(rng, dims, rng.choice([0, 0, 0, 2]))]
    if kind < 0.65:
        return strided(rng, dims)
    blocks = [box(rng, dims, 0) for _ in range(rng.choice([2, 2, 3, 5, 9]))]
    if kind < 0.85 and anchor.records:
        record = rng.randint(0, max(0, dims[0] - 1))
        blocks = [([record] + s[1:], [1] + c[1:]) for s, c in blocks]
    # An empty block is nothing unusual in a list that a program made; encoded, nobody could tell what it is.
    if kind > 0.95 and len(dims) == 1:
        blocks[rng.randrange(len(blocks))][1][0] = 0
    return blocks


class Request:
    def __init__(self, anchor, blocks, payload):
        self.anchor, self.blocks, self.payload = anchor, blocks, payload
        self.offset = None


def pack64(values):
    return b''.join(struct.pack('<q', v) for v in values)


def body_of(anchor, blocks, encode):
    """Flags, record number and selection part of a request (sections 3.2 to 3.5)."""
    flags, record, first = 0, None, 0
    starts = [s for s, _ in blocks]
    counts = [c for _, c in blocks]
    if anchor.records and all(c[0] == 1 and s[0] == starts[0][0] for s, c in blocks):
        flags |= REC
        record = starts[0][0]
        first = 1
    dims = anchor.dims[first:]
    starts = [s[first:] for s in starts]
    counts = [c[first:] for c in counts]
    out = b''
    if len(blocks) > 1:
        flags |= MUL
        out += struct.pack('<i', len(blocks))
    inside = all(a < n for s in starts for a, n in list(zip(s, dims))[1:]) and all(
        k <= n for c in counts for k, n in list(zip(c, dims))[1:]
    )
    if len(blocks) > 1 and len(dims) > 1 and encode and inside:
        flags |= ENC
        steps = [1]
        for n in dims[:0:-1]:
            steps.insert(0, steps[0] * n)
        out += pack64(steps[:-1])
        for part in (starts, counts):
            out += pack64(sum(x * step for x, step in zip(v, steps)) for v in part)
    else:
        for part in (starts, counts):
            out += pack64(x for v in part for x in v)
    return flags, record, out


def section(requests, encode, share):
    """The entries of one rank; equal selections refer to the first (section 3.7)."""
    out, known = b'', {}
    for request in requests:
        flags, record, body = request.body
        size = 28 + (8 if flags & REC else 0) + len(body)
        at = len(out)
        tail = None
        if share and len(body) > 8:
            seen = known.get((size, body))
            if seen is None:
                known[(size, body)] = (at, record)
            else:
                flags |= REF
                if flags & REC and seen[1] == record:
                    flags &= ~REC
                tail = (pack64([record]) if flags & REC else b'') + pack64([seen[0] - at])
        if tail is None:
            tail = (pack64([record]) if flags & REC else b'') + body
        head = struct.pack('<iiiqq', 28 + len(tail), request.anchor.id, flags, request.offset, len(request.payload))
        seen_flags[flags] = seen_flags.get(flags, 0) + 1
        out += head + tail
    return out


def merged(queue, encode, zip_bit):
    """Merge mode (section 5.6): one entry for each dataset, in the order of their numbers, with flags that say too much."""
    out = []
    for number in sorted({r.anchor.id for r in queue}):
        mine = [r for r in queue if r.anchor.id == number]
        anchor = mine[0].anchor
        one = Request(anchor, [b for r in mine for b in r.blocks], b''.join(r.raw for r in mine))
        one.raw = one.payload
        body = struct.pack('<i', len(one.blocks))
        for request in mine:
            for part in (0, 1):
                body += pack64(x for block in request.blocks for x in block[part])
        flags = MUL | (ENC if encode and len(anchor.dims) > 1 else 0) | (0x08 if zip_bit else 0)
        one.body = (flags, None, body)
        out.append(one)
    return out


def byte_dataset(group, name, size):
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_layout(h5d.CONTIGUOUS)
    plist.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    d = h5d.create(group.id, name.encode(), h5t.STD_B8LE, h5s.create_simple((size,)), plist)
    return d.get_offset()


def put(object_id, name, dtype, values):
    a = h5a.create(object_id, name.encode(), dtype, h5s.create_simple((len(values),)))
    if values:
        a.write(np.array(values, dtype='<i4' if dtype == h5t.STD_I32LE else '<i8'))


def make(path, seed):
    rng = random.Random(seed)
    ranks = rng.choice([1, 1, 2, 3, 4])
    encode, share, zip_bit = rng.random() < 0.7, rng.random() < 0.7, rng.random() < 0.2
    merge = rng.random() < 0.2
    config = (1 if merge else 0) | (2 if encode else 0) | (4 if zip_bit else 0) | (8 if share else 0)
    libver = rng.choice(['earliest', 'earliest', 'latest'])
    anchors, bytes_at, tables, logs, done = [], {}, 0, 0, []
    with h5py.File(path, 'w', libver=libver) as f:
        root = f['/']
        log = f.create_group('_LOG')
        nodes = {}

        def create():
            number = len(anchors)
            name = rng.choice(['d%d', 'g/d%d', 'g/h/d%d', '__d%d', 'g/_d%d', 'g/__d%d']) % number
            anchor = Anchor(rng, number, name)
            parent = f.require_group(os.path.dirname(name)) if '/' in name else root
            plist = h5p.create(h5p.DATASET_CREATE)
            if anchor.fill is not None:
                plist.set_fill_value(np.array(anchor.fill, dtype=anchor.dtype))
            leaf = os.path.basename(name).encode()
            node = h5d.create(parent.id, leaf, h5t.py_create(anchor.dtype), h5s.create(h5s.NULL), plist)
            put(node, '_dims', h5t.STD_I64LE, anchor.dims)
            put(node, '_mdims', h5t.STD_I64LE, [-1 if n is None else n for n in anchor.max])
            put(node, '_ID', h5t.STD_I32LE, [number])
            anchors.append(anchor)
            nodes[number] = node

        for _ in range(rng.randint(1, 4)):
            create()
        unwritten = [[] for _ in range(ranks)]
        posted = [[] for _ in range(ranks)]

        def flush():
            nonlocal logs
            size = sum(len(r.payload) for queue in posted for r in queue)
            if size == 0:
                return
            at = byte_dataset(log, '_ld_%d' % logs, size)
            logs += 1
            if merge:
                posted[:] = [merged(queue, encode, zip_bit) for queue in posted]
            for rank, queue in enumerate(posted):
                for request in queue:
                    request.offset = at
                    bytes_at[at] = request.payload
                    at += len(request.payload)
                unwritten[rank].extend(queue)
                done.extend(queue)
                queue.clear()

        def write_table():
            nonlocal tables
            if not any(unwritten):
                return
            parts = [section(queue, encode, share and not merge) for queue in unwritten]
            ends, end = [], 8 * (ranks + 1)
            for part in parts:
                end += len(part)
                ends.append(end)
            table = pack64([ranks] + ends) + b''.join(parts)
            bytes_at[byte_dataset(log, '_md_%d' % tables, len(table))] = table
            tables += 1
            for queue in unwritten:
                queue.clear()

        for _ in range(rng.randint(1, 5)):
            shared = None
            for _ in range(rng.randint(1, 12)):
                alive = [a for a in anchors if not a.deleted]
                if not alive:
                    break
                anchor = rng.choice(alive)
                blocks = selection(rng, anchor)
                # Often the same selection for another dataset of the same shape class: references.
                if shared and rng.random() < 0.6:
                    fits = [a for a in alive if len(a.dims) == len(shared[0][0])]
                    if fits:
                        anchor, blocks = rng.choice(fits), shared
                        if anchor.records and rng.random() < 0.5:
                            record = rng.randint(0, 3)
                            if all(c[0] == 1 for _, c in blocks):
                                blocks = [([record] + s[1:], c) for s, c in blocks]
                shared = blocks
                elements = sum(int(np.prod(c, dtype=np.int64)) for _, c in blocks)
                if elements == 0:
                    continue
                raw = bytes(rng.choices(range(256), k=elements * anchor.dtype.itemsize))
                if merge:
                    anchor.deflate = False
                    blocks = [b for b in blocks if 0 not in b[1]]
                if anchor.deflate:
                    raw = bytes([rng.randint(0, 255)]) * len(raw)
                request = Request(anchor, blocks, zlib.compress(raw) if anchor.deflate else raw)
                request.raw = raw
                request.body = body_of(anchor, blocks, encode)
                posted[rng.randrange(ranks)].append(request)
            what = rng.random()
            if what < 0.6:
                flush()
            if what < 0.35:
                write_table()
            if rng.random() < 0.3:
                create()
            alive = [a for a in anchors if not a.deleted]
            if alive and rng.random() < 0.3:
                anchor = rng.choice(alive)
                anchor.dims = [
                    rng.randint(0 if d == 0 else 1, (n + 3 if m is None else m))
                    for d, (n, m) in enumerate(zip(anchor.dims, anchor.max))
                ]
            if alive and rng.random() < 0.15:
                anchor = rng.choice(alive)
                anchor.deleted = True
                del nodes[anchor.id]
                del f[anchor.name]
        flush()
        write_table()
        put(root.id, '_int_att', h5t.STD_I32LE, [len(anchors), logs, tables, config, 1])
        nodes.clear()
        for anchor in anchors:
            if anchor.dims and not anchor.deleted:
                h5a.open(f[anchor.name].id, b'_dims').write(np.array(anchor.dims, dtype='<i8'))
    with open(path, 'r+b') as raw_file:
        for at, content in bytes_at.items():
            raw_file.seek(at)
            raw_file.write(content)
    return {'path': path, 'seed': seed, 'merged': merge, 'datasets': contents(anchors, done)}


def contents(anchors, done):
    """Fill, then every block in the order of its file offset (section 7)."""
    out = {}
    for anchor in anchors:
        if anchor.deleted:
            continue
        mine = [r for r in done if r.anchor is anchor]
        # A deflated dataset is known by streams that are not as long as their data; without any nobody can tell.
        if anchor.deflate and mine and all(len(r.payload) == len(r.raw) for r in mine):
            continue
        blocks = []
        for request in mine:
            at = 0
            for start, count in request.blocks:
                size = int(np.prod(count, dtype=np.int64)) * anchor.dtype.itemsize
                place = request.offset if anchor.deflate else request.offset + at
                blocks.append((place, at, start, count, request.raw[at : at + size]))
                at += size
        blocks.sort(key=lambda b: b[:2])
        extent = [max([n] + [s[d] + c[d] for _, _, s, c, _ in blocks]) for d, n in enumerate(anchor.dims)]
        data = np.full(extent, anchor.fill or 0, dtype=anchor.dtype)
        for _, _, start, count, raw in blocks:
            where = tuple(slice(s, s + c) for s, c in zip(start, count))
            data[where] = np.frombuffer(raw, dtype=anchor.dtype).reshape(count)
        # Without dimensions numpy would give a number in the byte order of the machine.
        data = data[tuple(slice(0, n) for n in anchor.dims)] if extent else data
        name = '/' + '/'.join(p[1:] if p.startswith('__') else p for p in anchor.name.split('/'))
        out[name] = {'shape': anchor.dims, 'max': anchor.max, 'hex': data.tobytes().hex()}
    return out


seen_flags = {}
folder, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for number in range(count):
    print(json.dumps(make(os.path.join(folder, '%d.h5' % number), first + number)))
print(json.dumps({'flags': {hex(k): v for k, v in sorted(seen_flags.items())}}))
