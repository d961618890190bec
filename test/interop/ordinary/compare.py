"""Compares files with what they should hold: compare.py LIST, a file of JSON lines {file, objects}. Prints what differs. What belongs to a log does not count."""
import json
import sys
import h5py
import numpy as np

for line in open(sys.argv[1]):
    expected = json.loads(line)
    try:
        with h5py.File(expected["file"], "r") as f:
            seen = {}
            f.visititems(lambda name, o: seen.__setitem__("/" + name, o))
            names = sorted(name for name, o in seen.items() if isinstance(o, h5py.Dataset) and not name.startswith("/_LOG/"))
            want = expected["objects"]
            if names != sorted(want):
                print(expected["file"], "has", names, "instead of", sorted(want))
                continue
            for name in names:
                d = seen[name]
                values = d[()]
                flat = np.ravel(values).tolist()
                flat = [v.decode() if isinstance(v, bytes) else v for v in flat]
                flat = [(f[v].name if v else "") if isinstance(v, h5py.Reference) else v for v in flat]
                attrs = {k: (v.tolist() if hasattr(v, "tolist") else v) for k, v in d.attrs.items() if not k.startswith("_")}
                found = {"shape": list(d.shape), "values": flat, "attributes": attrs}
                if found != want[name]:
                    print(expected["file"], name, "is", json.dumps(found)[:600], "instead of", json.dumps(want[name])[:600])
    except Exception as error:
        print(expected["file"], type(error).__name__, error)
