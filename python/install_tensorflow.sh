#!/bin/sh
# Makes a virtual environment with TensorFlow, and prints the path of its python. Does
# nothing where it is there already.
#
#   install_tensorflow.sh [FOLDER]     default $PLACER_TENSORFLOW_VENV, else ~/.cache/placer/doors/tensorflow
#
# Where python3 has TensorFlow already, the environment uses that one. Else the wheel
# without CUDA is installed: 274 MB, half a minute.
set -eu
venv=${1:-${PLACER_TENSORFLOW_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/placer/doors/tensorflow}}
version=2.21.0
python=${PYTHON:-python3}
say() { echo "install_tensorflow: $*" >&2; }
fail() { say "$*"; exit 1; }
works() { TF_CPP_MIN_LOG_LEVEL=3 "$1" -c 'import tensorflow' >/dev/null 2>&1; }

if [ -x "$venv/bin/python" ] && works "$venv/bin/python"; then
    echo "$venv/bin/python"
    exit 0
fi
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || fail "$python is older than 3.10; set PYTHON to another"
mkdir -p "$(dirname "$venv")"
rm -rf "$venv"
if works "$python"; then
    "$python" -m venv --system-site-packages "$venv" || fail "cannot make $venv"
else
    "$python" -m venv "$venv" || fail "cannot make $venv"
    case $(uname -s)-$(uname -m) in
    Linux-x86_64) package=tensorflow-cpu==$version ;;
    *) package=tensorflow==$version ;;
    esac
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$package" || fail "$package could not be had from the package index"
fi
works "$venv/bin/python" || fail "TensorFlow does not import: $("$venv/bin/python" -c 'import tensorflow' 2>&1 | tail -1)"
echo "$venv/bin/python"
