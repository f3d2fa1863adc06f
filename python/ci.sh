#!/bin/sh
# The package's tests, from nothing: an environment with torch, the package, pytest.
# Fails with one sentence where torch cannot be had.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=$("$here/install_torch.sh") || { echo "python/ci.sh: no torch, so the package cannot be tested" >&2; exit 1; }
"$python" -m pip install --quiet --disable-pip-version-check --no-warn-conflicts 'pytest>=7' 'pytest-xdist>=3.5' 'mypy>=1.8' 'hatchling>=1.25' || { echo "python/ci.sh: pytest and mypy could not be had" >&2; exit 1; }
# The build leaves its files beside the sources, so it works on a copy.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r "$here/pyproject.toml" "$here/wheel_program.py" "$here/placer_runtime" "$here/placer_torch" "$here/placer_tensorflow" "$here/placer_onnxruntime" "$copy"
"$python" -m pip install --quiet --disable-pip-version-check --no-warn-conflicts --no-deps --no-build-isolation --force-reinstall "$copy"
cd "$here"
"$python" -m mypy placer_runtime placer_torch
PYTHONSAFEPATH=1 OMP_NUM_THREADS=1 "$python" -m pytest -q "$@"
