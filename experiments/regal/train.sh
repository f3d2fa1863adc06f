#!/usr/bin/env bash
# Trains REGAL's policies for synthetic graphs as those of baselines/regal/gnn/trained
# were, into RUNS (default runs), and goes on where it was stopped. Copy
# weights.safetensors of each over the file of its name there to build them in.
set -euo pipefail
cd "$(dirname "$0")/../.."
go build -o bin/placer ./cmd/placer
train() { # folder, flags
  local folder=${RUNS:-runs}/regal-$1
  shift
  bin/placer bench regal --train-regal "$folder" --seed 3000 --train-batch 8 --train-graphs 64 "$@"
}
train warm-start --train-imitate 800 --train-steps 827 --train-rate 0.0002 --regal-likeliest
train no-warm-start --train-steps 98 --regal-likeliest
train 8-rounds --regal-agent deep --train-imitate 400 --train-steps 400 --regal-likeliest
