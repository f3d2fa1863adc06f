#!/bin/sh
# Installs what test_doors.py and test_jax.py need, beside the tree, and runs them.
#
#   run.sh PLACER
set -eu
here=$(cd "$(dirname "$0")" && pwd)
placer=$1
cache=${XDG_CACHE_HOME:-$HOME/.cache}/placer
torch=$("$here/../install_torch.sh")
if ! [ -d "$cache/doors/accelerate" ]; then
    "$torch" -m pip install --quiet --disable-pip-version-check --no-deps --target "$cache/doors/accelerate" \
        accelerate==1.15.0 safetensors huggingface_hub packaging psutil pyyaml numpy requests tqdm
fi
PYTHONPATH=$cache/doors/accelerate "$torch" "$here/test_doors.py" "$placer" torch
"$("$here/../install_tensorflow.sh")" "$here/test_doors.py" "$placer" tensorflow
"$("$here/../install_onnxruntime.sh")" "$here/test_doors.py" "$placer" onnx
"$("$here/../install_jax.sh")" "$here/test_jax.py" "$placer"
