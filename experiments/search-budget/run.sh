#!/usr/bin/env bash
# Searches the rows of table 2 within several budgets, one line of runs.tsv each; what
# has a line is left out. SECONDS_OF, SEEDS, ROWS (names), SINGLES (methods that get the
# whole budget for themselves), TASKS and OLD (another binary) say what; FLAGS go to each.
# A folder (OUT) is of one TASKS and one FLAGS, which its file settings names. A search
# that was interrupted has no line, nor has one that finds nothing that fits; the exit
# code is 3 where there was one. PLACER names a program to search with.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ -n "${PLACER:-}" ] || go build -o bin/placer ./cmd/placer
placer=${PLACER:-bin/placer}
out=${OUT:-experiments/search-budget}
mkdir -p "$out"
settings="TASKS=${TASKS:-place} FLAGS=${FLAGS-}"
if [ -e "$out/settings" ] && [ "$(cat "$out/settings")" != "$settings" ]; then
  echo "search-budget: $out has searches with $(cat "$out/settings"): name another OUT for $settings" >&2
  exit 2
fi
echo "$settings" >"$out/settings"
touch "$out/runs.tsv"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unfit=0
search() { # label binary seconds workload gpus seed flags...
  local label=$1 binary=$2 seconds=$3 workload=$4 gpus=$5 seed=$6 rc=0
  shift 6
  grep -q -P "^$seconds\t$workload\t$seed\t$label\t" "$out/runs.tsv" && return
  echo "search-budget: $workload, $seconds s, seed $seed, $label" >&2
  rm -rf "$work/run"
  # shellcheck disable=SC2086 # several flags
  "$binary" search -q --tasks "${TASKS:-place}" ${FLAGS-} "$@" --workload "$workload" --gpus "$gpus" --budget "${seconds}s" --seed "$seed" --out "$work/run" --json >"$work/result.json" || rc=$?
  if [ "$rc" = 3 ]; then
    echo "search-budget: nothing fits: $workload, $seconds s, seed $seed, $label" >&2
    unfit=3
    return
  fi
  [ "$rc" = 0 ] || exit "$rc"
  python3 experiments/search-budget/line.py "$seconds" "$workload" "$seed" "$label" "$work/result.json" >>"$out/runs.tsv"
}
for seconds in ${SECONDS_OF:-1 10 120}; do
  for seed in ${SEEDS:-1 2 3 4 5 6}; do
    while IFS=$'\t' read -r workload gpus; do
      [[ " ${ROWS:-$workload} " == *" $workload "* ]] || continue
      search new "$placer" "$seconds" "$workload" "$gpus" "$seed"
      [[ -z ${OLD:-} ]] || search old "$OLD" "$seconds" "$workload" "$gpus" "$seed"
      for method in ${SINGLES:-}; do
        search "$method" "$placer" "$seconds" "$workload" "$gpus" "$seed" --methods "human,$method"
      done
    done <experiments/table2/rows.tsv
  done
done
python3 experiments/search-budget/summary.py "$out/runs.tsv" >"$out/table.md.new"
mv "$out/table.md.new" "$out/table.md"
cat "$out/table.md"
exit "$unfit"
