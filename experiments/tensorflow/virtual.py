"""Grappler's VirtualCluster as a second opinion on the simulator, on GPUs that are not there.

    virtual.py FOLDER [COUNT]

predicts COUNT placements (30) of the LSTM's training step on two P100s of a host by both,
without times from anywhere: each costs ops and transfers by its own rules. Writes a line
for each placement to FOLDER/virtual.jsonl and the agreement to FOLDER/virtual.json.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import sys
import tempfile
from typing import Any

from placer_runtime import binary
from placer_tensorflow import capture, examples, step
from placer_tensorflow.runtime import tf
from accuracy import apart, kendall, placements, whole

from tensorflow.core.protobuf import device_properties_pb2, meta_graph_pb2
from tensorflow.python.grappler import cluster, item

P100 = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "hw", "machines", "p100.json")
PREFIX = "/job:localhost/replica:0/task:0/device:"


def device(name: str, **properties: Any) -> Any:
    """A device of a cluster; memory bandwidth in KB a second, as Grappler has it."""
    architecture = properties.pop("architecture", None)
    d = device_properties_pb2.NamedDevice(name=PREFIX + name)
    for k, v in properties.items():
        setattr(d.properties, k, v)
    if architecture:
        d.properties.environment["architecture"] = architecture
    return d


def p100s() -> Any:
    gpu = dict(type="GPU", vendor="NVIDIA", model="P100", frequency=1328, num_cores=56, bandwidth=732_000_000, memory_size=16 << 30, architecture="6")
    return cluster.Cluster(devices=[device("CPU:0", type="CPU", frequency=2500, num_cores=8, bandwidth=30_000_000, memory_size=64 << 30), device("GPU:0", **gpu), device("GPU:1", **gpu)])


def measured(c: Any, s: step.Step, placement: list[int]) -> float:
    """Grappler's step of a placement, in seconds."""
    meta = meta_graph_pb2.MetaGraphDef()
    meta.graph_def.CopyFrom(s.graph)
    for n, d in zip(meta.graph_def.node, placement):
        n.device = f"{PREFIX}GPU:{d}"
    fetch = [step.source(s.loss), *s.updates]
    meta.collection_def["train_op"].node_list.value.extend(fetch)
    made = item.Item(meta, ignore_colocation=True, ignore_user_placement=False)
    _, seconds, _ = c.MeasureCosts(made)
    return float(seconds)


def more(s: step.Step) -> dict[str, list[int]]:
    """Random placements and blocks beside those of the accuracy's."""
    rng = random.Random(2)
    made = {f"random {p}": [int(rng.random() < p) for _ in s.group] for p in (0.7, 0.35, 0.01)}
    made.update({f"blocks of {n}": [i // n % 2 for i in range(len(s.group))] for n in (800, 200, 50, 20)})
    return {k: whole(s, d) for k, d in made.items()}


def main(out: str, count: int = 30) -> None:
    with tempfile.TemporaryDirectory() as folder:
        s = capture.capture(examples.lstm, "lstm")
        step.write(s, folder)
        graph = os.path.join(folder, step.GRAPH)
        graph_hash = binary.graph_hash(graph)
        inputs = ["--graph", graph, "--gpu", "p100", "--gpus", "2"]
        with open(P100) as f:
            machine = json.load(f)
        for m in machine["models"].values():
            if "launch" in m:
                m["launch"] = "1 ns"
        calls = os.path.join(folder, "calls.json")  # the same machine, whose launches take no time
        with open(calls, "w") as f:
            json.dump(machine, f)

        def predicted(name: str, placement: list[int], machine: list[str]) -> float:
            doc = {"format": "placer plan 1", "graph": {"name": "lstm", "hash": graph_hash}, "machine": {"name": "any", "hash": "any"}, "method": name, "devices": ["gpu:0", "gpu:1"], "device": placement}
            path = os.path.join(folder, "plan.json")
            with open(path, "w") as f:
                json.dump(doc, f)
            return float(json.loads(binary.run("simulate", "--graph", graph, *machine, "--gpus", "2", "--plan", path, "--json"))["step_time_s"])

        def searched(method: str, evaluations: int) -> list[int]:
            path = os.path.join(folder, method + ".json")
            binary.run("search", *inputs, "--tasks", "place", "--from-scratch", "--methods", "single," + method.removesuffix("-long"), "--evaluations", str(evaluations), "--seed", "1", "--out", os.path.join(folder, method), "-o", path, "-q")
            with open(path) as f:
                return list(json.load(f)["device"])

        found = {**placements(s, searched), **more(s)}
        ours = {k: predicted(k, p, ["--gpu", "p100"]) for k, p in found.items()}
        chosen = apart(ours, count)
        c = p100s()
        theirs = {k: measured(c, s, found[k]) for k in chosen}
        bare = {k: predicted(k, found[k], ["--machine", calls]) for k in chosen}
    x, y, z = [ours[k] for k in chosen], [theirs[k] for k in chosen], [bare[k] for k in chosen]
    several = [k for k in chosen if k != "single"]
    doc = {
        "placements": len(chosen), "tau": round(kendall(x, y), 4),
        "median_ratio": round(statistics.median(a / b for a, b in zip(x, y)), 4),
        "without_launches": {"tau": round(kendall(z, y), 4), "median_ratio": round(statistics.median(a / b for a, b in zip(z, y)), 4)},
        "single": {"placer_s": ours["single"], "without_launches_s": bare["single"], "grappler_s": theirs["single"]},
        "best": {"placer": min(several, key=lambda k: ours[k]), "grappler": min(several, key=lambda k: theirs[k])},
        "tensorflow": tf.__version__,
    }
    with open(os.path.join(out, "virtual.jsonl"), "w") as f:
        f.writelines(json.dumps({"placement": k, "placer_s": ours[k], "without_launches_s": bare[k], "grappler_s": theirs[k]}) + "\n" for k in sorted(chosen, key=lambda k: ours[k]))
    with open(os.path.join(out, "virtual.json"), "w") as f:
        f.write(json.dumps(doc, indent=1) + "\n")
    for k in sorted(chosen, key=lambda k: ours[k]):
        print(f"{k:22s} placer {ours[k] * 1e3:8.3f} grappler {theirs[k] * 1e3:8.3f} ms")
    print(json.dumps(doc))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
