#!/usr/bin/env bash
# Pretrains policies of three widths on 30 to 3,000 drawn problems of ten families,
# without GNMT, AmoebaNet and Inception and their kin, and judges them on the rows of these
# families. All take the same steps; the problems of a larger number hold those of a smaller.
# JUDGE=no trains alone. GUIDES (all or none), SEEDS (default "1 2 3"), PROBLEMS, WIDTHS and
# STEPS of PPO (default 400) are trained and judged; what is there is not made again, and a
# stopped training goes on. CORPUS, a folder of pretrain corpus, takes the place of drawn
# problems, IMITATION (default 40) steps imitate its plans, and LABELS says what they are.
set -euo pipefail
cd "$(dirname "$0")/../../.."
placer=${PLACER:-bin/placer}
[ -n "${PLACER:-}" ] || go build -o "$placer" ./cmd/placer
guides=${GUIDES:-none}
name=guides-$guides
[ "${STEPS:-400}" = 400 ] || name=$name-steps-$STEPS
[ -z "${CORPUS:-}" ] || name=$name-labels-$LABELS
[ "${IMITATION:-40}" = 40 ] || name=$name-imitation-$IMITATION
runs=${RUNS:-runs/transfer-curve}/$name
judge=${TRANSFER:-go run ./experiments/transfer}
out=experiments/transfer/curve/$name
mkdir -p "$out"
for seed in ${SEEDS:-1 2 3}; do
  for problems in ${PROBLEMS:-30 100 300 1000 3000}; do
    for width in ${WIDTHS:-8 16 64}; do
      run=$runs/${problems}x$width-$seed
      [ -e "$run/policy.safetensors" ] && continue
      data=(--pool $((problems / 10)) --teacher 300 --cache "${CACHE:-$runs/plans}")
      [ -z "${CORPUS:-}" ] || data=(--corpus "$CORPUS" --problems "$problems")
      "$placer" pretrain -q --hold-out gnmt,amoebanet,inception --encoder 0 --guides "$guides" --hidden "$width" "${data[@]}" \
        --imitation "${IMITATION:-40}" --steps "${STEPS:-400}" --judged 1 --seed "$seed" --out "$run"
    done
  done
  [ "${JUDGE:-yes}" = no ] || $judge curve -o "$out" "$runs"/*x*-"$seed"/policy.safetensors
done
