#!/usr/bin/env bash
# Pretrains a policy with an encoder without each of the six families of GO's table 2
# and judges, zero-shot, the 14 rows by the policy that did not see their family, and the
# cases of GO's figure 6 with all three tasks. WIDTH (default 32), STEPS (4000), TASK_STEPS
# (600) and CACHE (plans that are imitated) apply to each policy. A stopped run goes on.
set -euo pipefail
cd "$(dirname "$0")/../../.."
go build -o bin/placer ./cmd/placer
runs=${RUNS:-runs/transfer-encoder}
out=experiments/transfer/encoder
cache=${CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/placer/plans}
mkdir -p "$out/policies"
for family in rnnlm gnmt trfxl inception amoebanet wavenet; do
  bin/placer pretrain -q --hold-out "$family" --encoder "${WIDTH:-32}" --steps "${STEPS:-4000}" --task-steps "${TASK_STEPS:-600}" --cache "$cache" --out "$runs/$family"
  cp "$runs/$family/policy.safetensors" "$out/policies/without-$family.safetensors"
done
go run ./experiments/transfer rows -tune 0 -o "$out" "$out"/policies/without-*.safetensors
go run ./experiments/transfer tasks -o "$out" "$out"/policies/without-*.safetensors
