"""Steps of PyTorch models as placer predicts them, beside the measured ones.

    python3 torch_table.py PLACER MODELS MACHINE MEASURED TIMES

MODELS has the folders of capture_torch_models.py, MACHINE is the calibrated machine
file of 'placer bench hw', MEASURED the document of torch_models.py, TIMES its op times
by model. Prints a table: the step of one GPU as one CUDA graph, by the roofline's
built-in constants, by the calibrated ones, and by the times of single ops. A kernel costs a
graph's node.
"""
from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
import tempfile
from typing import Any


def read(path: str) -> Any:
    with open(path) as f:
        return json.load(f)


class Predictions:
    def __init__(self, placer: str, folder: str):
        self.placer, self.folder = placer, folder

    def run(self, *args: str) -> str:
        return subprocess.run([self.placer, "-q", *args], check=True, capture_output=True, text=True).stdout

    def file(self, name: str, doc: Any) -> str:
        path = os.path.join(self.folder, name)
        with open(path, "w") as f:
            json.dump(doc, f)
        return path

    def step(self, graph: str, machine: Any, *times: str) -> float:
        """Seconds of a step on the first GPU."""
        out = os.path.join(self.folder, "run")
        subprocess.run(["rm", "-rf", out], check=True)
        where = ["--graph", graph, "--machine", self.file("machine.json", machine), "--gpus", "1", *times]
        doc = json.loads(self.run("search", *where, "--tasks", "place", "--methods", "single", "--evaluations", "1", "--out", out, "--json"))
        return doc["rows"][0]["step_time_s"]


def main() -> None:
    placer, models, machine_file, measured_file, times_file = sys.argv[1:6]
    machine, measured, times = read(machine_file), read(measured_file), read(times_file)
    gpu = machine["models"][next(d["model"] for d in machine["devices"] if d["name"].startswith("gpu"))]
    gpu["launch"] = gpu["graph_launch"]
    plain = copy.deepcopy(machine)
    for m in plain["models"].values():
        m.pop("calibration", None)
    lines = ["| model | ops | eager | one graph | built-in constants | calibrated | by times of ops |", "|---|---:|---:|---:|---:|---:|---:|"]
    errors: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        p = Predictions(placer, folder)
        for name, m in sorted(measured["models"].items()):
            graph = os.path.join(models, name, "graph.json")
            cells = []
            for how, on in (("built in", plain), ("calibrated", machine)):
                s = p.step(graph, on)
                errors.setdefault(how, []).append(s / m["graph_s"] - 1)
                cells.append(f"{s * 1e3:.2f} ms, {100 * (s / m['graph_s'] - 1):+.0f}%")
            if name in times:
                info = json.loads(p.run("import", "--graph", graph, "--json"))
                doc = {"format": "placer times 1", "graph": info["hash"], "source": "torch_models.py", "bandwidth": 25e9, "latency": 1e-5,
                       "models": [{"name": "GPU", "count": 1, "memory": gpu["capacity"], "seconds": [max(x, 1e-9) for x in times[name]]}]}
                s = p.step(graph, machine, "--times", p.file("times.json", doc))
                errors.setdefault("times", []).append(s / m["graph_s"] - 1)
                cells.append(f"{s * 1e3:.2f} ms, {100 * (s / m['graph_s'] - 1):+.1f}%")
            else:
                cells.append("")
            lines.append(f"| {name} | {m['calls']} | {m['eager_s'] * 1e3:.2f} ms | {m['graph_s'] * 1e3:.2f} ms | " + " | ".join(cells) + " |")
    print("\n".join(lines) + "\n")
    for how, e in errors.items():
        print(f"{how}: mean error {100 * sum(map(abs, e)) / len(e):.1f}%, {sum(abs(x) <= 0.15 for x in e)} of {len(e)} within 15%, {sum(abs(x) <= 0.07 for x in e)} within 7%")


main()
