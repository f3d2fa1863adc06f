#!/usr/bin/env bash
# Pretrains policies without GNMT, AmoebaNet and Inception, each with a part of the network
# left out, and judges them on the rows of these families. All have the same problems and
# steps. SEEDS (default "1 2 3") and VARIANTS are trained and judged; what is there is not
# made again, and a stopped training goes on. JUDGE=no trains alone.
set -euo pipefail
cd "$(dirname "$0")/../../.."
placer=${PLACER:-bin/placer}
[ -n "${PLACER:-}" ] || go build -o "$placer" ./cmd/placer
runs=${RUNS:-runs/transfer-ablation}
out=experiments/transfer/ablation
for seed in ${SEEDS:-1 2 3}; do
  for variant in ${VARIANTS:-whole graphsage attention recurrence superposition task-recurrence guides encoder untrained untrained-guides}; do
    run=$runs/$variant-$seed
    [ -e "$run/policy.safetensors" ] && continue
    case $variant in
    whole) flags="--encoder 32" ;;
    encoder) flags="--encoder 0" ;;
    guides) flags="--encoder 32 --guides none" ;;
    untrained) flags="--encoder 32" ;;
    untrained-guides) flags="--encoder 32 --guides none" ;;
    *) flags="--encoder 32 --without $variant" ;;
    esac
    length="--imitation 30 --steps ${STEPS:-1000} --task-steps 100"
    [[ $variant == untrained* ]] && length="--imitation 1 --steps 0 --task-steps 0"
    # shellcheck disable=SC2086 # flags are words
    "$placer" pretrain -q --hold-out gnmt,amoebanet,inception $flags $length --teacher 300 --pool 8 --judged 1 --seed "$seed" --cache "$runs/plans" --out "$run"
  done
done
[ "${JUDGE:-yes}" = no ] || go run ./experiments/transfer ablation -o "$out" "$runs"/*-*/policy.safetensors
