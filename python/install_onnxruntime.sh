#!/bin/sh
# Makes a virtual environment with onnx and ONNX Runtime, and prints the path of its
# python. Does nothing where it is there already. 37 MB, seconds.
#
#   install_onnxruntime.sh [FOLDER]     default $PLACER_ONNXRUNTIME_VENV, else ~/.cache/placer/doors/onnx
set -eu
venv=${1:-${PLACER_ONNXRUNTIME_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/placer/doors/onnx}}
works() { "$1" -c 'import onnx, onnxruntime' >/dev/null 2>&1; }
fail() { echo "install_onnxruntime: $*" >&2; exit 1; }

if ! [ -x "$venv/bin/python" ] || ! works "$venv/bin/python"; then
    rm -rf "$venv"
    "${PYTHON:-python3}" -m venv "$venv" || fail "cannot make $venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check onnx==1.23.2 onnxruntime==1.32.0 numpy || fail "onnx and onnxruntime could not be had from the package index"
fi
echo "$venv/bin/python"
