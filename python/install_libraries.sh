#!/bin/sh
# Puts the model libraries that tests_libraries needs into a folder beside the virtual
# environment with PyTorch, and prints its path. Does nothing where they are there already.
# 416 MB, a minute.
#
#   install_libraries.sh [FOLDER]     default ~/.cache/placer/libraries
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/placer/libraries}
fail() { echo "install_libraries: $*" >&2; exit 1; }

torch=$("$here/install_torch.sh")
if ! [ -e "$folder/whole" ]; then
    rm -rf "$folder"
    pip() { "$torch" -m pip install --quiet --disable-pip-version-check --no-warn-conflicts --target "$folder" "$@" || fail "the package index does not have what is wanted"; }
    pip pytest==9.2.0 transformers==5.24.0 pillow requests importlib_metadata psutil
    # They want a torch of their own, which is there.
    pip --no-deps accelerate==1.15.0 peft==0.21.2 diffusers==0.42.1 timm==1.0.31 torchvision==0.29.2
    touch "$folder/whole"
fi
echo "$folder"
