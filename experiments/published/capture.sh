#!/usr/bin/env bash
# Captures the PyTorch steps of stepmodels.py into experiments/published/graphs, or the folder
# OUT; ROWS='resnet50-f32-256 ...' names some. Needs torch, transformers and timm, which
# python/install_libraries.sh installs beside the tree; no GPU, and no memory for the models,
# which are on the meta device.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${OUT:-experiments/published/graphs}
python=$(python/install_torch.sh)
libraries=$(python/install_libraries.sh)
export PYTHONPATH=python:$libraries:experiments/published
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
capture() { # name function arguments; attention captured for a CPU is one kernel, for GPUs products and a softmax
  [[ " ${ROWS:-$1} " == *" $1 "* ]] || return 0
  "$python" -m placer_torch capture --device "${device:-cuda}" --model "stepmodels:$2" --args "$3" --name "$1" -o "$work/$1"
  gzip -9 -n -c "$work/$1/graph.json" >"$out/$1.json.gz"
}
capture resnet50-f32-256 image_model '{"batch": 256}'
capture resnet50-f32-112 image_model '{"batch": 112}'
capture resnet50-f16-256 image_model '{"batch": 256, "half": true}'
capture resnet50-f16-512 image_model '{"batch": 512, "half": true}'
capture resnet101-f16-inference-1024 image_model '{"name": "resnet101", "batch": 1024, "half": true, "train": false}'
capture vit-small-f16-384 image_model '{"name": "vit_small_patch16_224", "batch": 384, "half": true}'
capture vit-base-f16-192 image_model '{"name": "vit_base_patch16_224", "batch": 192, "half": true}'
capture vit-large-f16-64 image_model '{"name": "vit_large_patch16_224", "batch": 64, "half": true}'
capture vit-base-f16-inference-1024 image_model '{"name": "vit_base_patch16_224", "batch": 1024, "half": true, "train": false}'
device=cpu capture vit-base-f16-inference-1024-one-kernel image_model '{"name": "vit_base_patch16_224", "batch": 1024, "half": true, "train": false, "one_kernel": true}'
capture bert-large-f16-256x128 bert_large '{"batch": 256, "tokens": 128, "masked": 20, "half": true}'
capture bert-large-f32-128x128 bert_large '{"batch": 128, "tokens": 128, "masked": 20}'
capture bert-large-squad-f16-32x384 bert_large '{"batch": 32, "tokens": 384, "half": true}'
capture bert-large-squad-f32-32x384 bert_large '{"batch": 32, "tokens": 384}'
