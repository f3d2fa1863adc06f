"""Prints one line of runs.tsv from the document of a search."""

import json
import sys

seconds, workload, seed, label, path = sys.argv[1:]
with open(path, encoding="utf-8") as f:
    doc = json.load(f)
rows = {row["method"]: row for row in doc["rows"]}
if not (doc["best"].get("feasible", True) and rows["human"].get("feasible", True)):
    sys.exit(f"search-budget: {workload}: the best plan or the expert's does not fit")
used = sum(r.get("cpu_seconds", 0) for r in doc["rows"])
print(seconds, workload, seed, label, f"{doc['best']['step_time_s'] * 1e3:.6g}", f"{rows['human']['step_time_s'] * 1e3:.6g}", f"{used:.3g}", sep="\t")
