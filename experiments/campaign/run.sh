#!/usr/bin/env bash
# The property campaign in parts of PART cases: a part that has been run is not run again. The
# exit code is 1 where a case of OUT has failed, in this run or before.
#   run.sh BINARY CASES SEED OUT
set -euo pipefail
binary=$1 cases=$2 seed=$3 out=$4
part=${PART:-100}
mkdir -p "$out"
failed=0
for ((s = seed; s < seed + cases; s += part)); do
  n=$((seed + cases - s < part ? seed + cases - s : part))
  if [ -e "$out/from-$s.json" ] && grep -q "\"Cases\":$n," "$out/from-$s.json"; then continue; fi
  "$binary" -test.run 'TestCampaign$' -test.timeout 0 -campaign "$n" -campaign.from "$s" -campaign.out "$out" >"$out/from-$s.log" 2>&1 || failed=1
done
python3 - "$out" <<'END' || failed=1
import collections, glob, json, sys
sums, plans, tried = collections.Counter(), collections.Counter(), collections.Counter()
for f in glob.glob(sys.argv[1] + "/from-*.json"):
    x = json.load(open(f))
    sums.update({k: x[k] for k in ("Cases", "Refused", "Failed")})
    plans.update(x["Plans"])
    tried.update(x["Tried"])
print("%d cases, %d refused as infeasible, %d failed" % (sums["Cases"], sums["Refused"], sums["Failed"]))
print("%d plans of %d methods: %s" % (sum(plans.values()), len(plans), ", ".join("%s %d" % x for x in sorted(plans.items()))))
print("tried: " + ", ".join("%s %d" % x for x in sorted(tried.items())))
sys.exit(sums["Failed"] > 0)
END
exit $failed
