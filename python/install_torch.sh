#!/bin/sh
# Makes a virtual environment with a torch that works without a GPU, and prints
# the path of its python. Does nothing where it is there already.
#
#   install_torch.sh [FOLDER]     default $PLACER_TORCH_VENV, else ~/.cache/placer/torch; of torch
#                                 $PLACER_TORCH_VERSION, else 2.15.0
#
# Where python3 has a working torch already, the environment uses that one.
# Else the wheel of the package index (539 MB for x86-64, which links CUDA's
# libraries) is installed without them, and empty ones stand in (cuda_stand_ins.py;
# gcc and readelf are needed): 1.3 GB on disk, about a minute. Other processors get
# the index's wheel as it is; CPU workers are for x86-64 (docs/pytorch.md, Limits).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
venv=${1:-${PLACER_TORCH_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/placer/torch}}
version=${PLACER_TORCH_VERSION:-2.15.0}
python=${PYTHON:-python3}
say() { echo "install_torch: $*" >&2; }
fail() { say "$*"; exit 1; }
works() { "$1" -c 'import torch; torch.ones(2).sum().item()' >/dev/null 2>&1; }

if [ -x "$venv/bin/python" ] && works "$venv/bin/python"; then
    echo "$venv/bin/python"
    exit 0
fi
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || fail "$python is older than 3.10; set PYTHON to another"
began=$(date +%s)
mkdir -p "$(dirname "$venv")"
rm -rf "$venv"
if works "$python"; then
    "$python" -m venv --system-site-packages "$venv" || fail "cannot make $venv"
else
    "$python" -m venv "$venv" || fail "cannot make $venv"
    pip="$venv/bin/python -m pip install --quiet --disable-pip-version-check --no-warn-conflicts"
    case $(uname -s)-$(uname -m) in
    Linux-x86_64)
        command -v gcc >/dev/null && command -v readelf >/dev/null || fail "gcc and readelf are needed to do without CUDA's libraries (or install torch for $python by yourself, whole: 2.5 GB)"
        $pip --no-deps "torch==$version" || fail "torch $version could not be had from the package index"
        $pip filelock 'typing-extensions>=4.13' 'setuptools>=77' 'sympy>=1.13.3' networkx jinja2 'fsspec>=0.8.5' || fail "torch's Python needs could not be had from the package index"
        "$venv/bin/python" "$here/cuda_stand_ins.py" "$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/torch/lib" >&2 || fail "the stand-ins for CUDA's libraries could not be made"
        ;;
    *)
        $pip "torch>=2.6" || fail "torch could not be had from the package index"
        ;;
    esac
fi
works "$venv/bin/python" || fail "torch does not import: $("$venv/bin/python" -c 'import torch' 2>&1 | tail -1)"
say "torch $("$venv/bin/python" -c 'import torch; print(torch.__version__)') in $venv: $(du -sm "$venv" | cut -f1) MB, $(($(date +%s) - began)) s"
echo "$venv/bin/python"
