#!/usr/bin/env bash
# Searches every row of rows.tsv and records the documents and their summary in
# OUT (default experiments/table2). BUDGET (default 5m), SEED (default 1) and FLAGS
# (default --from-scratch) apply to each row. What is recorded stays until what takes its
# place is whole. PLACER names a program to search with.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ -n "${PLACER:-}" ] || go build -o bin/placer ./cmd/placer
placer=${PLACER:-bin/placer}
out=${OUT:-experiments/table2}
mkdir -p "$out"
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT
files=()
while IFS=$'\t' read -r workload gpus; do
  echo "table2: $workload on $gpus GPUs" >&2
  # shellcheck disable=SC2086 # several flags
  "$placer" search -q --tasks place ${FLAGS---from-scratch} --workload "$workload" --gpus "$gpus" --budget "${BUDGET:-5m}" --seed "${SEED:-1}" \
    --out "$runs/$workload" --json >"$out/$workload.json.new"
  mv "$out/$workload.json.new" "$out/$workload.json"
  files+=("$out/$workload.json")
done <experiments/table2/rows.tsv
go run ./experiments/summarise "${files[@]}" >"$out/table.md.new"
mv "$out/table.md.new" "$out/table.md"
cat "$out/table.md"
