#!/usr/bin/env bash
# Searches the rows of table 2 for the step on the machine as it is, in 4*EVALUATIONS
# evaluations, and for its p95 over machines that deviate: from the same 4*EVALUATIONS, and
# EVALUATIONS more that are each of 50 machines. Both plans are judged on 1,000 machines that
# neither was chosen on: a line of OUT/rows.tsv each (default experiments/robust). What has a
# line is left out. EVALUATIONS (default 1000), SEED (default 1), GPU (default p100),
# ROWS='gnmt2 rnnlm4' and FLAGS say what; WORK is a folder that keeps the plans. Neither a line
# nor a plan says its FLAGS: others need an OUT, and a WORK, of their own.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ -n "${PLACER:-}" ] || go build -o bin/placer ./cmd/placer
placer=${PLACER:-bin/placer}
out=${OUT:-experiments/robust}
gpu=${GPU:-p100} evaluations=${EVALUATIONS:-1000} seed=${SEED:-1}
mkdir -p "$out"
[ -s "$out/rows.tsv" ] || printf 'workload\tgpu\tgpus\tevaluations\tseed\tplain_step_s\tplain_median_s\tplain_p95_s\trobust_step_s\trobust_median_s\trobust_p95_s\n' >"$out/rows.tsv"
if [ -n "${WORK:-}" ]; then # plans stay there, so that a row that was stopped goes on
  work=$WORK
  mkdir -p "$work"
else
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
fi
find_plan() { # workload gpus run evaluations flags...; no plan of a search that was interrupted
  local workload=$1 gpus=$2 run=$3 n=$4
  shift 4
  local kept=$work/$workload-$gpu-$gpus-$evaluations-$seed-$run.json
  if [ ! -s "$kept" ]; then
    rm -rf "$work/run"
    # shellcheck disable=SC2086 # several flags
    "$placer" search -q --tasks place ${FLAGS---from-scratch --methods human,single,listsched,heft-units,etf-units,local,anneal} --workload "$workload" --gpu "$gpu" --gpus "$gpus" \
      --evaluations "$n" --budget 10h --strategies=false --seed "$seed" "$@" --out "$work/run" --json >/dev/null || return
    mv "$work/run/plan.json" "$kept" || return
  fi
  "$placer" simulate -q --workload "$workload" --gpu "$gpu" --gpus "$gpus" --plan "$kept" --robust p95 --json |
    python3 -c 'import json,sys; d=json.load(sys.stdin); s=d["spread"]; print(d["step_time_s"], s["median_s"], s["step_time_s"], sep="\t")'
}
while IFS=$'\t' read -r workload gpus; do
  [[ " ${ROWS:-$workload} " == *" $workload "* ]] || continue
  grep -q -P "^$workload\t$gpu\t$gpus\t$evaluations\t$seed\t" "$out/rows.tsv" && continue
  plain=$(find_plan "$workload" "$gpus" plain $((4 * evaluations)))
  robust=$(find_plan "$workload" "$gpus" robust "$evaluations" --robust p95)
  printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$workload" "$gpu" "$gpus" "$evaluations" "$seed" "$plain" "$robust" >>"$out/rows.tsv"
  tail -1 "$out/rows.tsv" >&2
done <experiments/table2/rows.tsv
awk -F'\t' 'NR > 1 { n++; r = $11 / $8 - 1; if (r < 0) w++; printf "%-12s %s  plain p95 %.4g ms, robust %.4g ms, %+.2f%%; on the machine as it is %+.2f%%\n", $1, $3, 1e3 * $8, 1e3 * $11, 100 * r, 100 * ($9 / $6 - 1) }
  END { printf "robust is below plain on %d of %d rows\n", w, n }' "$out/rows.tsv"
