"""Prints the medians of runs.tsv, and the geometric means over the rows."""

import collections
import math
import statistics
import sys

cells = collections.defaultdict(list)
for text in open(sys.argv[1], encoding="utf-8"):
    seconds, workload, _, label, step, human, _ = text.rstrip("\n").split("\t")
    cells[float(seconds), label, workload].append(float(step) / float(human))
columns = sorted({(s, l) for s, l, _ in cells}, key=lambda x: (x[0], x[1] != "old", x[1]))
workloads = list(dict.fromkeys(w for _, _, w in cells))


def show(ratios):
    under = sorted(100 * (1 - r) for r in ratios)
    return f"{statistics.median(under):.1f}% ({under[0]:.1f} to {under[-1]:.1f}, {len(under)})"


print("| graph | " + " | ".join(f"{l}, {s:g} s" for s, l in columns) + " |")
print("|---" * (len(columns) + 1) + "|")
for w in workloads:
    print(f"| {w} | " + " | ".join(show(cells[s, l, w]) if cells[s, l, w] else "" for s, l in columns) + " |")
means = []
for s, l in columns:
    rows = [math.log(statistics.median(cells[s, l, w])) for w in workloads if cells[s, l, w]]
    means.append(f"{100 * (1 - math.exp(sum(rows) / len(rows))):.1f}% of {len(rows)} rows" if rows else "")
print("| geometric mean | " + " | ".join(means) + " |")
