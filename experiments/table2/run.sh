#!/usr/bin/env bash
# Searches every row of rows.tsv and records the documents and their summary.
# BUDGET (default 5m) and SEED (default 1) apply to each row.
set -euo pipefail
cd "$(dirname "$0")/../.."
go build -o bin/placer ./cmd/placer
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT
files=()
while IFS=$'\t' read -r workload gpus; do
  echo "table2: $workload on $gpus GPUs" >&2
  bin/placer search -q --tasks place --from-scratch --workload "$workload" --gpus "$gpus" --budget "${BUDGET:-5m}" --seed "${SEED:-1}" \
    --out "$runs/$workload" --json >"experiments/table2/$workload.json.new"
  mv "experiments/table2/$workload.json.new" "experiments/table2/$workload.json"
  files+=("experiments/table2/$workload.json")
done <experiments/table2/rows.tsv
go run ./experiments/summarise "${files[@]}" | tee experiments/table2/table.md
