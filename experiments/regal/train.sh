#!/usr/bin/env bash
# Trains REGAL's policies as those of baselines/regal/gnn/trained were, into RUNS
# (default runs), and goes on where it was stopped. Copy weights.safetensors of each
# over the file of its name there to build them in. Those for real graphs need the
# ONNX files in PLACER_DATA.
set -euo pipefail
cd "$(dirname "$0")/../.."
go build -o bin/placer ./cmd/placer
train() { # folder, flags
  local folder=${RUNS:-runs}/regal-$1
  shift
  bin/placer bench regal --train-regal "$folder" --seed 3000 --regal-likeliest "$@"
}
imitate=(--train-batch 8 --train-graphs 64)
train warm-start "${imitate[@]}" --train-imitate 800 --train-steps 827 --train-rate 0.0002
train 8-rounds "${imitate[@]}" --regal-agent deep --train-imitate 400 --train-steps 400
# REINFORCE alone: many samples, each rewarded by the one schedule that it gives.
alone=(--train-batch 8 --train-graphs 32 --train-samples 128 --train-evaluations 1 --train-keep 8)
train no-warm-start "${alone[@]}" --train-max-ops 70 --train-rate 0.005 --train-steps 336
train no-warm-start "${alone[@]}" --train-max-ops 120 --train-rate 0.001 --train-steps 420
