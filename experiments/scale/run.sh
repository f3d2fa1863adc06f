#!/usr/bin/env bash
# Searches graphs from 10,000 to a million ops, one line of runs.jsonl each; what has a line
# with the same settings is left out. SIZES, GPUS, SECONDS_OF, SEED and FLAGS say what. PLACER
# names a program to search with.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${OUT:-experiments/scale}
placer=${PLACER:-bin/placer}
mkdir -p "$out"
touch "$out/runs.jsonl"
for size in ${SIZES:-10k 30k 100k 300k 1M}; do
  workload=$(awk -v s="$size" '$1 == s {print $2}' experiments/scale/sizes.tsv)
  [[ -n $workload ]] || { echo "scale: no size $size in sizes.tsv" >&2; exit 2; }
  for seconds in ${SECONDS_OF:-300}; do
    # shellcheck disable=SC2086 # several flags
    key=$(python3 experiments/scale/one.py key "$size" "$workload" "${GPUS:-8}" "$seconds" "${SEED:-1}" ${FLAGS-})
    grep -q -F "$key, " "$out/runs.jsonl" && continue
    echo "scale: $size, $seconds s" >&2
    work=$(mktemp -d)
    # shellcheck disable=SC2086 # several flags
    if python3 experiments/scale/one.py search "$placer" "$size" "$workload" "${GPUS:-8}" "$seconds" "${SEED:-1}" "$work" ${FLAGS-} >"$work/line"; then
      cat "$work/line" >>"$out/runs.jsonl"
    else
      tail -n 5 "$work/log" >&2 || true
      rm -rf "$work"
      exit 1
    fi
    rm -rf "$work"
  done
done
python3 experiments/scale/summary.py "$out/runs.jsonl" >"$out/table.md.new"
mv "$out/table.md.new" "$out/table.md"
cat "$out/table.md"
