#!/bin/sh
# Makes a virtual environment with JAX for CPUs, Flax, Optax, Haiku and Equinox, and prints
# the path of its python. Does nothing where it is there already. 760 MB, a minute.
#
#   install_jax.sh [FOLDER]     default $PLACER_JAX_VENV, else ~/.cache/placer/doors/jax
set -eu
venv=${1:-${PLACER_JAX_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/placer/doors/jax}}
works() { "$1" -c 'import equinox, flax, haiku, jax, optax' >/dev/null 2>&1; }
fail() { echo "install_jax: $*" >&2; exit 1; }

if ! [ -x "$venv/bin/python" ] || ! works "$venv/bin/python"; then
    rm -rf "$venv"
    "${PYTHON:-python3}" -m venv "$venv" || fail "cannot make $venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check 'jax[cpu]==0.10.2' flax==0.12.8 optax==0.2.8 dm-haiku==0.0.17 equinox==0.13.8 || fail "JAX could not be had from the package index"
fi
echo "$venv/bin/python"
