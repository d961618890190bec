"""The files of E3SM with parallel HDF5, as h5py has it: python3 e3sm_peer.py PLAN [collective|independent], under mpiexec.

All variables of a file are datasets of the canonical layout, contiguous, with their attributes; no fill value is
written where every element is. What a rank writes of a decomposition is one union of hyperslabs, made once, before the
clock runs: boxes of runs that lie above one another, so that it has some hundred parts and not thousands.
The first rank prints JSON: the seconds of each repetition, of its slowest rank, from the opening of the first file to the
closing of the last.
"""
import json
import os
import sys

import numpy
from mpi4py import MPI

import h5py
from h5py import h5a, h5d, h5fd, h5p, h5s, h5t

comm = MPI.COMM_WORLD


def boxes_of(runs, dims):
    """Runs as boxes of the last two dimensions: row, rows, column, columns; row counts all dimensions but the last."""
    width = dims[-1]
    row, column, length = runs[:, 0] // width, runs[:, 0] % width, runs[:, 1]
    order = numpy.lexsort((row, length, column))
    row, column, length = row[order], column[order], length[order]
    height = dims[-2] if len(dims) > 1 else 1
    begins = numpy.ones(len(row), bool)
    begins[1:] = (
        (row[1:] != row[:-1] + 1)
        | (column[1:] != column[:-1])
        | (length[1:] != length[:-1])
        | (row[1:] % height == 0)
    )
    first = numpy.flatnonzero(begins)
    rows = numpy.diff(numpy.append(first, len(row)))
    return numpy.stack([row[first], rows, column[first], length[first]], axis=1).tolist()


class Selections:
    """What this rank writes of each decomposition, as dataspaces that are made once."""

    def __init__(self, decompositions, numbers):
        self.decompositions = decompositions
        self.runs = []
        for one in decompositions:
            first, count = one["ranks"][comm.rank]
            self.runs.append(numbers[first : first + count])
        self.boxes = [
            boxes_of(runs, one["dims"]) if len(runs) else [] for runs, one in zip(self.runs, decompositions)
        ]
        self.known = {}

    def positions(self, number):
        """The elements of this rank, in the order of the file."""
        runs = self.runs[number]
        starts = numpy.repeat(runs[:, 0] - numpy.append(0, numpy.cumsum(runs[:, 1])[:-1]), runs[:, 1])
        return starts + numpy.arange(len(starts))

    def space(self, variable, record):
        shape, number = variable["shape"], variable["decomposition"]
        key = (number, variable["isRecord"], record, *shape)
        if key not in self.known:
            self.known[key] = self.make(shape, number, variable["isRecord"], record)
        return self.known[key]

    def make(self, shape, number, is_record, record):
        space = h5s.create_simple(tuple(shape)) if shape else h5s.create(h5s.SCALAR)
        lead = (record,) if is_record else ()
        if number < 0:
            if comm.rank != 0:
                space.select_none()
            elif is_record:
                space.select_hyperslab(lead + (0,) * (len(shape) - 1), (1, *shape[1:]))
            return space
        dims = self.decompositions[number]["dims"]
        space.select_none()
        for row, rows, column, columns in self.boxes[number]:
            start, count = (column,), (columns,)
            if len(dims) > 1:
                start, count = (row % dims[-2], column), (rows, columns)
                row //= dims[-2]
            for size in dims[-3::-1]:
                start, count = (row % size, *start), (1, *count)
                row //= size
            space.select_hyperslab(lead + start, (1,) * len(lead) + count, op=h5s.SELECT_OR)
        return space


def values_of(variable, record, selections):
    number, shape = variable["decomposition"], variable["shape"]
    if number >= 0:
        positions = selections.positions(number)
    else:
        size = int(numpy.prod(shape[1:] if variable["isRecord"] else shape, dtype="i8"))
        positions = numpy.arange(size if comm.rank == 0 else 0)
    seed, mask = variable["seeds"][record]["seed"], variable["seeds"][record]["mask"]
    values = positions + seed if mask < 0 else (positions + seed) & mask
    return values.astype(variable["type"])


def prepared(attributes):
    """Name, type, dataspace and value of attributes."""
    made = []
    for one in attributes:
        if "type" in one:
            value = numpy.array(one["value"], one["type"])
        else:
            value = numpy.char.encode(numpy.array(one["value"]), "utf-8")
            # An empty text has a length too.
            value = value.astype(f"S{max(1, value.dtype.itemsize)}")
        space = h5s.create_simple(value.shape) if value.shape else h5s.create(h5s.SCALAR)
        made.append((one["name"].encode(), h5t.py_create(value.dtype, logical=True), space, value))
    return made


def describe(thing, attributes):
    for name, kind, space, value in attributes:
        h5a.create(thing, name, kind, space).write(value)


def create(file, variable, complete, attributes):
    properties = h5p.create(h5p.DATASET_CREATE)
    properties.set_layout(h5d.CONTIGUOUS)
    if variable["fill"] is not None:
        properties.set_fill_value(numpy.array(variable["fill"], variable["type"]))
    if complete:
        properties.set_fill_time(h5d.FILL_TIME_NEVER)
    shape = variable["shape"]
    space = h5s.create_simple(tuple(shape)) if shape else h5s.create(h5s.SCALAR)
    kind = h5t.py_create(numpy.dtype(variable["type"]), logical=True)
    links = h5p.create(h5p.LINK_CREATE)
    links.set_create_intermediate_group(True)
    dataset = h5d.create(file.id, variable["path"].encode(), kind, space, properties, lcpl=links)
    describe(dataset, attributes)
    return dataset


def write(path, described, variables, posts, transfer, collective):
    with h5py.File(path, "w", driver="mpio", comm=comm) as file:
        describe(file["/"].id, described[0][1])
        for name, attributes in described[1:]:
            describe(file.require_group(name).id, attributes)
        datasets = [create(file, *variable) for variable in variables]
        for number, memory, space, values in posts:
            if collective or len(values):
                datasets[number].write(memory, space, values, dxpl=transfer)
        del datasets


def main():
    collective = (sys.argv[2] if len(sys.argv) > 2 else "collective") == "collective"
    with open(sys.argv[1]) as text:
        plan = json.load(text)
    numbers = numpy.fromfile(os.path.join(os.path.dirname(sys.argv[1]), "runs.bin"), "<i8").reshape(-1, 2)
    decompositions = plan["decompositions"]
    selections = Selections(decompositions, numbers)
    transfer = h5p.create(h5p.DATASET_XFER)
    transfer.set_dxpl_mpio(h5fd.MPIO_COLLECTIVE if collective else h5fd.MPIO_INDEPENDENT)
    files = []
    for file in plan["files"]:
        posts = []
        for i, variable in enumerate(file["variables"]):
            for record in range(len(variable["seeds"])):
                values = values_of(variable, record, selections)
                memory = h5s.create_simple((len(values),))
                if len(values) == 0:
                    memory.select_none()
                posts.append((i, memory, selections.space(variable, record), values))
        variables = []
        for one in file["variables"]:
            complete = one["decomposition"] < 0 or decompositions[one["decomposition"]]["complete"]
            variables.append((one, complete, prepared(one["attributes"])))
        described = [("/", prepared(file["attributes"]))]
        described += [(group["name"], prepared(group["attributes"])) for group in file["groups"]]
        files.append((file["path"], described, variables, posts, transfer, collective))
    times = []
    for _ in range(plan["repeat"]):
        if comm.rank == 0:
            # Giving back the blocks of the file before is no part of writing the next one.
            for path, *_ in files:
                open(path, "w").close()
        comm.Barrier()
        begun = MPI.Wtime()
        for file in files:
            write(*file)
        times.append(comm.allreduce(MPI.Wtime() - begun, MPI.MAX))
    if comm.rank == 0:
        print(json.dumps(times))


main()
