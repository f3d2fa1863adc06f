#!/bin/sh
# placer_tensorflow's tests, from nothing: an environment with TensorFlow, pytest, mypy.
# Fails with one sentence where TensorFlow cannot be had.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=$("$here/install_tensorflow.sh") || { echo "python/ci_tensorflow.sh: no TensorFlow, so the package cannot be tested" >&2; exit 1; }
"$python" -m pip install --quiet --disable-pip-version-check 'pytest>=7' 'mypy>=1.8' || { echo "python/ci_tensorflow.sh: pytest and mypy could not be had" >&2; exit 1; }
cd "$here"
"$python" -m mypy placer_runtime placer_tensorflow
PYTHONPATH=. "$python" -m pytest -q tests_tensorflow "$@"
