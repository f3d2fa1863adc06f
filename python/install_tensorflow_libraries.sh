#!/bin/sh
# Puts the model library that tests_tensorflow_libraries needs into a folder beside the
# virtual environment with TensorFlow, and prints its path. Does nothing where it is there
# already. 33 MB.
#
#   install_tensorflow_libraries.sh [FOLDER]     default ~/.cache/placer/tensorflow-libraries
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/placer/tensorflow-libraries}
fail() { echo "install_tensorflow_libraries: $*" >&2; exit 1; }

python=$("$here/install_tensorflow.sh")
if ! [ -e "$folder/whole" ]; then
    rm -rf "$folder"
    # It wants a Keras and a TensorFlow of its own, which are there.
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$folder" keras-hub==0.32.0 tokenizers==0.23.3 regex || fail "the package index does not have what is wanted"
    touch "$folder/whole"
fi
echo "$folder"
