"""What h5py does of a workload. One argument, JSON: workload, path, chunked and the sizes. Prints seconds as JSON.

What it wrote is read back and compared, outside the clock.
"""
import json
import sys
import time

import h5py
import numpy

BLOCK = 2**17
MADE = 64
ROW = 128


def clock(run):
    begun = time.perf_counter()
    result = run()
    return time.perf_counter() - begun, result


def rows_of(numbers):
    numbers = numpy.asarray(numbers, "f8")
    return numpy.stack([numbers, numbers + 0.5, -numbers], axis=1)


def same(found, expected, what):
    if not numpy.array_equal(found, expected):
        raise SystemExit(f"{what}: not what was written")


def write_each(dataset, order):
    row = numpy.empty(3)
    for r in order:
        row[0] = r
        row[1] = r + 0.5
        row[2] = -r
        dataset[r] = row


def read_all(path):
    with h5py.File(path, "r") as file:
        return file["x"][()]


def small(path, chunked, rows, count, reads, box):
    # Chunks are those that h5py chooses.
    layout = {"chunks": True} if chunked else {}
    figures = {}
    for name in ("ordered", "shuffled"):
        order = numpy.arange(rows) if name == "ordered" else numpy.random.default_rng(1).permutation(rows)
        order = order[:count].tolist()

        def create():
            file = h5py.File(path, "w")
            return file, file.create_dataset("x", (rows, 3), "f8", **layout)

        creating, (file, dataset) = clock(create)
        writing, _ = clock(lambda: write_each(dataset, order))
        closing, _ = clock(file.close)
        expected = numpy.zeros((rows, 3))
        expected[order] = rows_of(order)
        same(read_all(path), expected, f"small, {name}")
        everything = rows_of(numpy.arange(rows))
        if count < rows:
            with h5py.File(path, "r+") as file:
                file["x"][...] = everything
        reading, found = clock(lambda: read_all(path))
        same(found, everything, f"small, {name}, all of it")
        starts = [i * 7919 % (rows - box + 1) for i in range(reads)]
        with h5py.File(path, "r") as file:
            dataset = file["x"]
            random, boxes = clock(lambda: [dataset[start : start + box] for start in starts])
        for start, values in zip(starts, boxes):
            same(values, everything[start : start + box], f"small, {name}, rows from {start}")
        figures[f"small/{name}/write"] = creating + writing * rows / count + closing
        figures[f"small/{name}/read"] = reading
        figures[f"small/{name}/random"] = random
    return figures


def stream(path, chunked, blocks):
    layout = {"chunks": (BLOCK,)} if chunked else {}
    made = [numpy.arange(BLOCK) * 0.25 + i * BLOCK for i in range(min(blocks, MADE))]

    def write():
        with h5py.File(path, "w") as file:
            dataset = file.create_dataset("x", (blocks * BLOCK,), "f8", **layout)
            for i in range(blocks):
                values = made[i % len(made)]
                values[0] = i
                dataset[i * BLOCK : (i + 1) * BLOCK] = values

    seconds, _ = clock(write)
    with h5py.File(path, "r") as file:
        for i in (0, blocks // 2, blocks - 1):
            values = made[i % len(made)]
            values[0] = i
            same(file["x"][i * BLOCK : (i + 1) * BLOCK], values, f"stream, block {i}")
    return {"stream/write": seconds}


def flushes(path, flushes, count):
    row = numpy.empty(ROW)

    def write():
        with h5py.File(path, "w") as file:
            dataset = file.create_dataset("x", (0, ROW), "f8", maxshape=(None, ROW), chunks=True)
            for i in range(count):
                dataset.resize(i + 1, axis=0)
                row.fill(i)
                dataset[i] = row
                file.flush()

    seconds, _ = clock(write)
    same(read_all(path), numpy.repeat(numpy.arange(count, dtype="f8"), ROW).reshape(count, ROW), "flushes")
    return {"flushes/total": seconds * flushes / count}


task = json.loads(sys.argv[1])
print(json.dumps({"small": small, "stream": stream, "flushes": flushes}[task.pop("workload")](**task)))
