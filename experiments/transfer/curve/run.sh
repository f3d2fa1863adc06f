#!/usr/bin/env bash
# Pretrains policies of three widths on the first 30, 100 and 300 problems of a corpus
# (CORPUS) without GNMT, AmoebaNet and Inception and their kin, and judges them on the rows of
# these families. All take the same steps. SEEDS (default "1 2 3"), PROBLEMS and WIDTHS are
# trained and judged; what is there is not made again, and a stopped training goes on.
set -euo pipefail
cd "$(dirname "$0")/../../.."
placer=${PLACER:-bin/placer}
[ -n "${PLACER:-}" ] || go build -o "$placer" ./cmd/placer
runs=${RUNS:-runs/transfer-curve}
judge=${TRANSFER:-go run ./experiments/transfer}
train() { # VARIANT SEED FLAGS...
  local run=$runs/$1-$2 seed=$2
  shift 2
  [ -e "$run/policy.safetensors" ] || "$placer" pretrain -q --corpus "${CORPUS:-runs/corpus}" --hold-out gnmt,amoebanet,inception \
    --judged 0 --seed "$seed" --out "$run" "$@"
}
for seed in ${SEEDS:-1 2 3}; do
  train 0x16 "$seed" --problems 30 --imitation 1 --steps 0
  for problems in ${PROBLEMS:-30 100 300}; do
    for width in ${WIDTHS:-8 16 64}; do
      train "${problems}x$width" "$seed" --problems "$problems" --hidden "$width" --imitation "${IMITATION:-60}" --steps "${STEPS:-600}"
    done
  done
  $judge -curve -o experiments/transfer/curve "$runs"/*-"$seed"/policy.safetensors
done
