#!/bin/sh
# Puts onnx, torch's exporter to it and ONNX Runtime into a folder beside the virtual
# environment with PyTorch and the model libraries, and prints the paths of both folders as
# PYTHONPATH has them. Does nothing where they are there already. 130 MB, seconds.
#
#   install_onnx_libraries.sh [FOLDER]     default ~/.cache/placer/onnx-libraries
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/placer/onnx-libraries}
fail() { echo "install_onnx_libraries: $*" >&2; exit 1; }

libraries=$("$here/install_libraries.sh")
if ! [ -e "$folder/whole" ]; then
    rm -rf "$folder"
    "$("$here/install_torch.sh")" -m pip install --quiet --disable-pip-version-check --no-warn-conflicts --target "$folder" onnx==1.23.2 onnxscript==0.7.2 onnxruntime==1.32.0 || fail "the package index does not have what is wanted"
    touch "$folder/whole"
fi
echo "$libraries:$folder"
