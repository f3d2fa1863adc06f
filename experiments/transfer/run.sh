#!/usr/bin/env bash
# Pretrains a policy without each of the six families of GO's table 2 and judges
# the 14 rows by the policy that did not see their family. HOURS (default 0: by
# STEPS), STEPS (default 5000), ENCODER (width; default 32) and CACHE (plans that are
# imitated; default a folder of the user's cache) apply to each policy, TUNE_SEEDS
# (default 3) to fine-tuning. OUT (default experiments/transfer) has the policies and
# the results; only there they become the card of the built-in policy. A stopped run
# goes on where it was.
set -euo pipefail
cd "$(dirname "$0")/../.."
go build -o bin/placer ./cmd/placer
home=experiments/transfer
out=${OUT:-$home}
runs=${RUNS:-runs/$(basename "$out")}
cache=${CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/placer/plans}
mkdir -p "$out/policies"
for family in rnnlm gnmt trfxl inception amoebanet wavenet; do
  bin/placer pretrain -q --hold-out "$family" --encoder "${ENCODER:-32}" --steps "${STEPS:-5000}" --hours "${HOURS:-0}" --cache "$cache" --out "$runs/$family"
  cp "$runs/$family/policy.safetensors" "$out/policies/without-$family.safetensors"
done
mkdir -p "$runs/results"
go run ./experiments/transfer rows -tune-seeds "${TUNE_SEEDS:-3}" -o "$runs/results" "$out"/policies/without-*.safetensors
cp "$runs/results/results.csv" "$runs/results/tuned.csv" "$runs/results/table.md" "$out/"
[ "$out" = "$home" ] || exit 0
# The built-in policy sees all families; its card says what the same training came
# to where one was held out.
bin/placer pretrain -q --encoder "${ENCODER:-32}" --steps "${STEPS:-5000}" --hours "${HOURS:-0}" --cache "$cache" --out "$runs/all"
go run ./experiments/transfer card "$runs/all/policy.safetensors"
