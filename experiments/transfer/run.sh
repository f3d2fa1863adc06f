#!/usr/bin/env bash
# Pretrains a policy without each of the six families of GO's table 2 and judges
# the 14 rows by the policy that did not see their family. HOURS (default 0: by
# STEPS), STEPS (default 5000) and CACHE (plans that are imitated; default a
# folder of the user's cache) apply to each policy. A stopped run goes on where it
# was.
set -euo pipefail
cd "$(dirname "$0")/../.."
go build -o bin/placer ./cmd/placer
runs=${RUNS:-runs/transfer}
cache=${CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/placer/plans}
for family in rnnlm gnmt trfxl inception amoebanet wavenet; do
  bin/placer pretrain -q --hold-out "$family" --steps "${STEPS:-5000}" --hours "${HOURS:-0}" --cache "$cache" --out "$runs/$family"
  cp "$runs/$family/policy.safetensors" "experiments/transfer/policies/without-$family.safetensors"
done
mkdir -p "$runs/results"
go run ./experiments/transfer rows -o "$runs/results" experiments/transfer/policies/without-*.safetensors
cp "$runs/results/results.csv" "$runs/results/tuned.csv" "$runs/results/table.md" experiments/transfer/
# The built-in policy sees all families; its card says what the same training came
# to where one was held out.
bin/placer pretrain -q --steps "${STEPS:-5000}" --hours "${HOURS:-0}" --cache "$cache" --out "$runs/all"
go run ./experiments/transfer card "$runs/all/policy.safetensors"
