"""Predicted against measured steps of TensorFlow on two logical CPU devices.

    accuracy.py FOLDER [MODEL ...]

captures and profiles each model, has placer predict placements of a wide range, runs them
in turn, and writes a line for each placement to FOLDER/MODEL.jsonl and the summary to
FOLDER/MODEL.json. Nothing is fitted per plan. The host's speed drifts, so each placement
is measured between two measurements of one device's step and counts in that unit: the
median over the rounds, times the unit of the profile. $PLACER is the program.
"""

from __future__ import annotations

import json
import math
import os
import random
import statistics
import sys
import tempfile
from typing import Any, Callable

from placer_runtime import binary, clock
from placer_tensorflow import capture, crossing, examples, profile, schedule, step
from placer_tensorflow.run import Runner, equal

DEVICES = ["cpu:0", "cpu:1"]
PLACEMENTS, ROUNDS, STEPS = 18, 7, 3
METHODS = {"heft": 100, "etf-units": 100, "metis": 100, "local": 2000, "anneal": 6000, "anneal-long": 30000}


def kendall(x: list[float], y: list[float]) -> float:
    """Kendall's tau-b (Biometrika 33, 1945): pairs that are tied in one list count in the other alone."""
    pairs = [(x[a] - x[b], y[a] - y[b]) for a in range(len(x)) for b in range(a)]
    signs = sum((p * q > 0) - (p * q < 0) for p, q in pairs)
    return signs / math.sqrt(sum(p != 0 for p, _ in pairs) * sum(q != 0 for _, q in pairs))


class Model:
    """A captured and profiled model, and the folder of its files."""

    def __init__(self, name: str, folder: str):
        self.folder, self.name = folder, name
        self.step = capture.capture(getattr(examples, name), name)
        step.write(self.step, folder)
        self.hash = binary.graph_hash(self.file(step.GRAPH))

    def file(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def profile(self) -> float:
        """Writes times and machine; returns one device's step beside the profile, the unit."""
        with Runner(self.step, schedule.single(self.step), realtime=True) as one:
            one.run(2)
            before = min(one.run(4))
            best = min((profile.on_core(self.step, realtime=True) for _ in range(3)), key=lambda p: p.step_s)
            c = crossing.measure(realtime=True)
            unit = (before + min(one.run(4))) / 2
        profile.write(self.file("times.json"), profile.times_doc(self.hash, best, c, len(DEVICES)))
        profile.write(self.file("machine.json"), profile.machine_doc(c, len(DEVICES)))
        print(f"{self.name}: {len(self.step.graph.node)} nodes, step {best.step_s * 1e3:.1f} ms, executor {best.executor_s * 1e6:.2f} us a node, send {c.send_s * 1e6:.1f} us, delivery {c.delivery_s * 1e6:.1f} us, {c.receive_bandwidth / 1e9:.0f} GB/s", flush=True)
        return unit * min(1.0, best.step_s / unit)

    def inputs(self) -> list[str]:
        return ["--graph", self.file(step.GRAPH), "--machine", self.file("machine.json"), "--times", self.file("times.json"), "--cpu"]

    def search(self, method: str, evaluations: int) -> list[int]:
        out = self.file(method + ".plan.json")
        binary.run("search", *self.inputs(), "--tasks", "place", "--from-scratch", "--methods", "single," + method.removesuffix("-long"), "--evaluations", str(evaluations), "--seed", "1", "--out", self.file("run-" + method), "-o", out, "-q")
        with open(out) as f:
            return list(json.load(f)["device"])

    def schedule(self, name: str, device: list[int]) -> schedule.Schedule:
        doc = {"format": "placer plan 1", "graph": {"name": self.name, "hash": self.hash}, "machine": {"name": "any", "hash": "any"}, "method": name, "devices": DEVICES, "device": device}
        with open(self.file("plan.json"), "w") as f:
            json.dump(doc, f)
        binary.schedule(binary.Inputs(self.file(step.GRAPH), self.file("machine.json"), self.file("times.json"), cpu=True), self.file("plan.json"), self.file("schedule.json"))
        return schedule.read(self.step, self.file("schedule.json"))


def placements(s: step.Step, searched: Callable[[str, int], list[int]]) -> dict[str, list[int]]:
    """Placements of a wide range on two devices, whole co-location groups each."""
    names = [n.name for n in s.graph.node]
    found = {m: searched(m, n) for m, n in METHODS.items()}
    found["single"] = [0] * len(names)
    rng = random.Random(1)
    for p in (0.5, 0.2, 0.1, 0.05, 0.02):
        found[f"random {p}"] = [int(rng.random() < p) for _ in names]
    for n in (400, 100, 30, 10):
        found[f"blocks of {n}"] = [i // n % 2 for i in range(len(names))]
    for word in ("layer2", "head", "block0", "block3", "block1", "branch1", "branch3"):
        if any(word in k for k in names):
            found[word] = [int(word in k) for k in names]
    found["backward"] = [int(k.startswith("gradients")) for k in names]
    found["late layers"] = [int(any(w in k for w in ("layer2", "head", "block2", "block3"))) for k in names]
    for p in (0.01, 0.03, 0.08, 0.2):
        found[f"anneal, {p} moved"] = [d ^ int(rng.random() < p) for d in found["anneal"]]
    return {k: whole(s, d) for k, d in found.items()}


def whole(s: step.Step, device: list[int]) -> list[int]:
    """device, with co-location groups where their first node is."""
    first: dict[int, int] = {}
    return [first.setdefault(g, d) if g else d for g, d in zip(s.group, device)]


def apart(predicted: dict[str, float], count: int) -> list[str]:
    """So many names, those whose predicted steps lie the farthest apart, single and the best first."""
    chosen = ["single", min(predicted, key=lambda k: predicted[k])]
    while len(set(chosen)) < min(count, len(predicted)):
        left = [k for k in predicted if k not in chosen]
        chosen.append(max(left, key=lambda k: min(abs(predicted[k] / predicted[c] - 1) for c in chosen)))
    return list(dict.fromkeys(chosen))


def accuracy(name: str, out: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        m = Model(name, folder)
        unit = m.profile()
        schedules = {k: m.schedule(k, d) for k, d in placements(m.step, m.search).items()}
        predicted = {k: float(s.predicted_s or 0) for k, s in schedules.items()}
        chosen = apart(predicted, PLACEMENTS)
        load = clock.Load()
        runners = {k: Runner(m.step, schedules[k], realtime=True) for k in chosen}
        want = runners["single"].results()
        same = {k: equal(want, r.results()) for k, r in runners.items()}
        for r in runners.values():
            r.run(2)
        ratios: dict[str, list[float]] = {k: [] for k in chosen}
        one = min(runners["single"].run(STEPS))
        for _ in range(ROUNDS):
            for k in chosen:
                took, after = min(runners[k].run(STEPS)), min(runners["single"].run(STEPS))
                ratios[k].append(2 * took / (one + after))
                one = after
        measured = {k: statistics.median(x) * unit for k, x in ratios.items()}
        for r in runners.values():
            r.close()
    x, y = [predicted[k] for k in chosen], [measured[k] for k in chosen]
    searched = min((k for k in METHODS if k in chosen), key=lambda k: predicted[k])
    gain = {"predicted": predicted["single"] / predicted[searched], "measured": measured["single"] / measured[searched]}
    doc = {
        "model": name, "ops": len(m.step.graph.node), "placements": len(chosen), "equal": sum(same.values()),
        "tau": round(kendall(x, y), 4), "mean_error": round(sum(abs(a / b - 1) for a, b in zip(x, y)) / len(x), 4),
        "regret": round(measured[min(chosen, key=lambda k: predicted[k])] / min(y) - 1, 4),
        "searched": searched, "gain": {k: round(v, 4) for k, v in gain.items()}, "load": load.others(),
    }
    with open(os.path.join(out, name + ".jsonl"), "w") as f:
        f.writelines(json.dumps({"placement": k, "predicted_s": round(predicted[k], 7), "measured_s": round(measured[k], 7), "equal": same[k]}) + "\n" for k in chosen)
    with open(os.path.join(out, name + ".json"), "w") as f:
        f.write(json.dumps(doc, indent=1) + "\n")
    for k in sorted(chosen, key=lambda k: predicted[k]):
        print(f"{k:20s} predicted {predicted[k] * 1e3:7.2f} measured {measured[k] * 1e3:7.2f} ms {predicted[k] / measured[k] - 1:+.1%} {'' if same[k] else 'NOT EQUAL'}")
    print(json.dumps(doc), flush=True)
    return doc


if __name__ == "__main__":
    for model in sys.argv[2:] or ["lstm", "inception"]:
        accuracy(model, sys.argv[1])
