#!/usr/bin/env bash
# Trains the networks that are not there, one without each family, and compares searches by
# chance and under them. From the environment: TASKS (place), SECONDS_OF ("1,5"), SEEDS (6),
# ROWS (all), DRAWN problems beside the rows (0), SEARCH (annealing, or portfolio), JOBS that
# run at once (1), RUNS (runs) for what need not stay.
set -euo pipefail
cd "$(dirname "$0")/../.."
tasks=${TASKS:-place} runs=${RUNS:-runs} search=${SEARCH:-annealing} go=${GO:-go}
home=experiments/guided
[ "$tasks" = place ] || home=$home/all-tasks
out=$home
[ "$search" = annealing ] || out=$home/$search
mkdir -p "$home/networks" "$runs/guided"
$go build -o "$runs/guided/placer" ./cmd/placer
$go build -o "$runs/guided/compare" ./experiments/guided
for family in rnnlm gnmt trfxl inception amoebanet wavenet; do
  to=$home/networks/without-$family.safetensors
  [ -f "$to" ] && continue
  "$runs/guided/placer" pretrain moves -q --tasks "$tasks" --hold-out $family --cache "$runs/judged" --out "$runs/guided/$tasks-$family"
  cp "$runs/guided/$tasks-$family/moves.safetensors" "$to.new"
  mv "$to.new" "$to"
done
exec "$runs/guided/compare" -tasks "$tasks" -search "$search" -seconds "${SECONDS_OF:-1,5}" -seeds "${SEEDS:-6}" \
  -rows "${ROWS:-}" -drawn "${DRAWN:-0}" -jobs "${JOBS:-1}" -networks "$home/networks" -o "$out"
