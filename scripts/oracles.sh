#!/usr/bin/env bash
# Installs the tools of others that the tests compare with. Changes nothing when all of them are there.
set -euo pipefail

packages=(hdf5-tools python3-h5py netcdf-bin python3-netcdf4 python3-xarray python3-h5netcdf openmpi-bin mpich chromium zsh fish groff)
python=${H5LOG_PYTHON:-/usr/bin/python3}

missing() {
  local tool
  for tool in h5dump h5ls ncdump ncgen mpiexec.openmpi mpiexec.mpich chromium zsh fish groff; do
    command -v "$tool" >/dev/null || echo "$tool"
  done
  local module
  for module in h5py netCDF4 xarray h5netcdf; do
    "$python" -c "import $module" 2>/dev/null || echo "$module for $python"
  done
}

absent=$(missing | paste -sd ' ')
if [ -z "$absent" ]; then
  echo "oracles: h5dump, h5ls, h5py, ncdump, netCDF4, xarray, h5netcdf, Open MPI, MPICH, Chromium, zsh, fish and groff are installed"
  exit 0
fi

if ! command -v apt-get >/dev/null; then
  echo "oracles: missing: $absent" >&2
  echo "oracles: this script knows Debian and Ubuntu only; install the equivalents of ${packages[*]} yourself" >&2
  exit 1
fi

root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "oracles: missing: $absent; run as root: apt-get install ${packages[*]}" >&2
    exit 1
  fi
  root=(sudo)
fi

echo "oracles: missing: $absent; installing ${packages[*]}"
"${root[@]}" apt-get update -qq
"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}"

absent=$(missing | paste -sd ' ')
if [ -n "$absent" ]; then
  echo "oracles: still missing after the installation: $absent" >&2
  exit 1
fi
