"""Prints the table of runs.jsonl, and how costs grow with the number of ops."""

import json
import math
import sys

with open(sys.argv[1], encoding="utf-8") as f:
    runs = sorted((json.loads(line) for line in f), key=lambda r: (r["budget_s"], r["ops"]))


def among(r):
    """What a search of the same size and budget may differ in, where it is not the usual."""
    return "".join([f", {r['gpus']} GPUs" if r["gpus"] != 8 else "", f", seed {r['seed']}" if r["seed"] != 1 else "", *(" " + f for f in r["flags"])])


print("| ops | edges | budget | ready to search | first plan | wall | peak memory | best rule | found | under the rule | evaluations |")
print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
for r in runs:
    print(f"| {r['ops']} | {r['edges']} | {r['budget_s']:g} s{among(r)} | {r['ready_s']:.1f} s | {r['first_plan_s']:.1f} s | {r['wall_s']:.0f} s | {r['peak_bytes'] / 2**30:.2f} GiB "
          f"| {r['rule']} {r['rule_s']:.4g} s | {r['best_s']:.4g} s | {100 * (1 - r['best_s'] / r['rule_s']):.1f}% | {r['evaluations']} |")
print()
for budget, others in sorted({(r["budget_s"], among(r)) for r in runs}):
    of = [r for r in runs if (r["budget_s"], among(r)) == (budget, others)]
    a, b = of[0], of[-1]
    if a["ops"] == b["ops"]:
        continue
    grow = lambda f: math.log(f(b) / f(a)) / math.log(b["ops"] / a["ops"])
    print(f"{budget:g} s{others}, from {a['ops']} to {b['ops']} ops: time until ready grows like ops^{grow(lambda r: r['ready_s']):.2f}, "
          f"memory like ops^{grow(lambda r: r['peak_bytes']):.2f}, what follows the budget like ops^{grow(lambda r: max(r['wall_s'] - r['budget_s'], 0.1)):.2f}.")
