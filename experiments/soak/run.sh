#!/usr/bin/env bash
# Soak: one search of a large graph under a limit of memory, its memory and file handles
# sampled every 10 s into OUT/samples.tsv, and a line of summary.
#   BUDGET=2h MEMORY=4 experiments/soak/run.sh OUT
set -euo pipefail
out=${1:?name a folder}
budget=${BUDGET:-2h}
gib=${MEMORY:-4}
workload=${WORKLOAD:-gnmt8}
mkdir -p "$out"
run=$out/run-$(date -u +%Y%m%d-%H%M%S)
# ulimit -v bounds address space, of which Go reserves more than it uses; where
# the process may make a group of its own, cgroups bound the memory itself.
(
  ulimit -v $(((gib + 4) << 20))
  GOMEMLIMIT=$((gib << 30)) exec nice -n "${NICE:-19}" bin/placer search -q --workload "$workload" --gpus 8 --budget "$budget" --workers "${WORKERS:-1}" --out "$run"
) >"$out/search.txt" 2>&1 &
pid=$!
samples=$out/samples.tsv
printf 'seconds\trss_kib\tpeak_kib\thandles\tthreads\n' >"$samples"
began=$SECONDS
while kill -0 $pid 2>/dev/null; do
  if [ -r /proc/$pid/status ]; then
    awk -v s=$((SECONDS - began)) -v h="$(ls /proc/$pid/fd 2>/dev/null | wc -l)" \
      '/^VmRSS/ { rss = $2 } /^VmHWM/ { peak = $2 } /^Threads/ { n = $2 } END { if (rss) printf "%d\t%d\t%d\t%d\t%d\n", s, rss, peak, h, n }' /proc/$pid/status >>"$samples" 2>/dev/null || true
  fi
  sleep 10
done
wait $pid && code=0 || code=$?
# Quarters of the time: most memory and most handles of each.
awk -v code=$code -F'\t' 'NR > 1 { t[++n] = $1; rss[n] = $2; fd[n] = $4 }
  END {
    printf "exit %d after %d s, %d samples;", code, t[n], n
    for (q = 0; q < 4; q++) {
      m = h = 0
      for (k = 1 + int(q * n / 4); k <= int((q + 1) * n / 4); k++) { if (rss[k] > m) m = rss[k]; if (fd[k] > h) h = fd[k] }
      printf " quarter %d: %d MiB, %d handles;", q + 1, m / 1024, h
    }
    print ""
  }' "$samples" | tee "$out/summary.txt"
exit $code
