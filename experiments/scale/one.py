"""Makes the graph file of one size, searches it, and prints one line of runs.jsonl.

usage: one.py search PLACER SIZE WORKLOAD GPUS BUDGET_SECONDS SEED FOLDER FLAGS...
       one.py key SIZE WORKLOAD GPUS BUDGET_SECONDS SEED FLAGS...

The second prints how the line of such a search begins, without making it.
"""

import json
import os
import re
import subprocess
import sys
import threading
import time


def run(command, stderr):
    """Runs command; returns wall seconds, processor seconds and peak resident bytes."""
    begin = time.monotonic()
    p = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr)
    _, status, usage = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {p.returncode}")
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def settings(size, workload, gpus, budget, seed, *flags):
    """What a line begins with."""
    return {"size": size, "workload": workload, "gpus": int(gpus), "budget_s": float(budget), "seed": int(seed), "flags": list(flags)}


if sys.argv[1] == "key":
    print(json.dumps(settings(*sys.argv[2:]))[:-1])
    sys.exit()
placer, size, workload, gpus, budget, seed, folder, *flags = sys.argv[2:]
graph, out, log = (os.path.join(folder, name) for name in ("graph.json", "run", "log"))
made, _, made_peak = run([placer, "import", "--workload", workload, "-o", graph], subprocess.DEVNULL)
with open(log, "wb") as stderr:
    wall, cpu, peak = run([placer, "search", *flags, "--graph", graph, "--gpu", "a100", "--gpus", gpus, "--budget", budget + "s", "--seed", seed, "--out", out], stderr)
with open(os.path.join(out, "result.json"), encoding="utf-8") as f:
    doc = json.load(f)
with open(log, encoding="utf-8") as f:
    read = float(re.search(r"([0-9.]+) s  .* ops, ", f.read()).group(1))
steps = []
with open(os.path.join(out, "progress.jsonl"), encoding="utf-8") as f:
    for line in f:
        x = json.loads(line)
        if x["feasible"] and x["step_time_s"] and (not steps or x["step_time_s"] < steps[-1][1]):
            steps.append([x["seconds"], x["step_time_s"]])
rule = doc["best_rule"]
print(json.dumps({
    **settings(size, workload, gpus, budget, seed, *flags), "load": os.getloadavg()[1],
    "ops": doc["graph"]["ops"], "edges": doc["graph"]["edges"], "graph_bytes": os.path.getsize(graph), "made_s": round(made, 2), "made_peak_bytes": made_peak,
    "ready_s": read, "first_plan_s": doc["first_feasible_s"], "searched_s": doc["seconds"], "wall_s": round(wall, 2), "cpu_s": round(cpu, 2), "peak_bytes": peak,
    "run_bytes": sum(os.path.getsize(os.path.join(out, name)) for name in os.listdir(out) if os.path.isfile(os.path.join(out, name))),
    "rule": rule["method"], "rule_s": rule["value"], "best": doc["best"]["method"], "best_s": doc["best"]["step_time_s"], "bound_s": doc["lower_bound_s"], "evaluations": doc["evaluations"], "steps": steps,
}))
