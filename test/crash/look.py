"""Looks at files as others do: look.py LIST, a file of JSON lines {file, commit, values, netcdf}. Prints what is wrong, then how many files it looked at."""
import json
import sys
import h5py
import numpy as np

xarray = None
looked = {"h5py": 0, "xarray": 0}


def text(value):
    return value.decode() if isinstance(value, bytes) else value


for line in open(sys.argv[1]):
    expected = json.loads(line)
    path = expected["file"]
    try:
        with h5py.File(path, "r") as f:
            n = int(f.attrs.get("commit", 0))
            if n != expected["commit"]:
                print(path, "is at commit", n, "instead of", expected["commit"])
            seen = {}
            f.visititems(lambda name, o: seen.__setitem__("/" + name, o[()]) if isinstance(o, h5py.Dataset) and o.shape is not None else None)
            for name, values in expected["values"].items():
                found = [text(v) for v in np.ravel(f[name][()]).tolist()]
                if found != values:
                    print(path, name, "is", found[:20], "instead of", values[:20])
            looked["h5py"] += 1
        if expected["netcdf"]:
            xarray = xarray or __import__("xarray")
            for engine, options in (("netcdf4", {}), ("h5netcdf", {"phony_dims": "sort"})):
                with xarray.open_dataset(path, engine=engine, **options) as data:
                    for variable in data.variables.values():
                        variable.values
            looked["xarray"] += 1
    except Exception as error:
        print(path, type(error).__name__, error)
print(json.dumps(looked))
