#!/usr/bin/env bash
# Pretrains policies that read no rule of thumb (--guides none), each without one of the six
# families of GO's table 2, and judges the 14 rows zero-shot by the policy that did not see
# their family, beside an untrained network that reads the same. SEEDS of training (default
# "1 2 3"), WIDTH (default 64), STEPS (2000) and CACHE (plans that are imitated) apply to
# each policy. A stopped run goes on, and what is recorded is not made again.
set -euo pipefail
cd "$(dirname "$0")/../../.."
go build -o bin/placer ./cmd/placer
runs=${RUNS:-runs/transfer-unguided}
out=experiments/transfer/unguided
cache=${CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/placer/plans}
for seed in ${SEEDS:-1 2 3}; do
  for family in rnnlm gnmt trfxl inception amoebanet wavenet; do
    bin/placer pretrain -q --encoder 0 --guides none --hold-out "$family" --hidden "${WIDTH:-64}" --steps "${STEPS:-2000}" --seed "$seed" --cache "$cache" --out "$runs/$seed/$family"
  done
  mkdir -p "$out/$seed"
  go run ./experiments/transfer rows -tune 0 -seeds 1 -o "$out/$seed" "$runs/$seed"/*/policy.safetensors
done
