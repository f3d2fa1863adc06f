"""The searched plan against the layer-per-device expert, predicted and measured: GNMT-like
models in PyTorch on CPU devices.

    gnmt.py CONFIG FOLDER

captures and profiles each model of the configuration, has `placer search` place it once by
the expert's rule and once for each seed, and runs the plans' steps in turn, so that what
else the host does meets all of them. Raw times go to FOLDER/gnmt.jsonl, a line for each round
of a plan, and the table to FOLDER/gnmt.md. Times are processor time on the virtual clock;
the wall clock's stand beside them.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import statistics
import sys
import tempfile
from typing import Any

from placer_runtime import binary
from placer_torch import clock, graph, hosts, schedule, state
from placer_torch.capture import capture
from placer_torch.measure import Meter
from placer_torch.program import Program
from placer_torch.run_workers import Workers

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python", "tests"))


@dataclasses.dataclass
class Model:
    """A captured and profiled model and the folder of its files."""

    name: str
    program: Program
    meter: Meter
    folder: str

    def file(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def search(self, name: str, methods: str | None, seed: int, evaluations: int) -> schedule.Schedule:
        """The schedule of the best plan of a search."""
        inputs = ["--graph", self.file("graph.json"), "--machine", self.file("machine.json"), "--times", self.file("times.json"), "--cpu"]
        plan, out = self.file(f"{name}.plan.json"), self.file(f"{name}.json")
        how = ["--methods", methods] if methods else []
        binary.run("search", *inputs, "--tasks", "place,schedule", "--seed", str(seed), "--evaluations", str(evaluations), *how, "--out", self.file(name), "-o", plan, "-q")
        binary.run("export", *inputs, "--plan", plan, "--as", "schedule", "-o", out)
        return schedule.read(self.program, out)


def prepare(name: str, model: str, args: dict[str, Any], devices: int, realtime: bool, folder: str) -> Model:
    module, _, function = model.partition(":")
    net, loss, batch, optimizer = getattr(importlib.import_module(module), function)(**args)
    p = capture(net, loss, batch, optimizer, name=name)
    m = Model(name, p, Meter(p, state.of_model(p, net), state.leaves(p, batch)), folder)
    graph.write(p, m.file("graph.json"))
    hosts.Cores(devices).profile(m.meter, folder, binary.graph_hash(m.file("graph.json")), realtime=realtime)
    return m


def measure(m: Model, plans: dict[str, schedule.Schedule], rounds: int, steps: int, realtime: bool) -> list[dict[str, Any]]:
    """A record for each round of each plan, in turn."""
    records = []
    for k in range(rounds):
        for name, s in plans.items():
            load = clock.Load()
            with Workers(m.program, s, m.meter.state, m.meter.batch, specs=m.meter.specs, realtime=realtime) as w:
                w.run(1)
                got = w.run(steps)
            others = load.others()
            records.append(
                {
                    "model": m.name, "plan": name, "round": k, "predicted_s": s.predicted_s, "virtual_s": [round(x, 7) for x in got.virtual_s],
                    "wall_s": [round(x, 7) for x in got.wall_s], "load": None if others is None else round(others, 2),
                }
            )  # fmt: skip
    return records


def least(records: list[dict[str, Any]], model: str, plan: str, of: str) -> list[float]:
    """The least step of each round of a plan."""
    return [min(r[of]) for r in records if r["model"] == model and r["plan"] == plan]


def table(records: list[dict[str, Any]], ops: dict[str, int], equal: dict[str, bool]) -> str:
    lines = [
        "| model | ops | one device, ms | expert, ms | searched, ms | predicted gain | measured gain | by the wall clock | error of prediction | load |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for model in ops:
        predicted = {r["plan"]: r["predicted_s"] for r in records if r["model"] == model}
        seeds = [p for p in predicted if p.startswith("seed ")]
        times = {p: statistics.median(least(records, model, p, "virtual_s")) for p in predicted}
        gains = {c: sorted(e / x for s in seeds for e, x in zip(least(records, model, "expert", c), least(records, model, s, c))) for c in ("virtual_s", "wall_s")}
        said = sorted(predicted["expert"] / predicted[s] for s in seeds)
        error = statistics.mean(abs(predicted[p] / times[p] - 1) for p in ["expert", *seeds])
        load = [r["load"] for r in records if r["model"] == model and r["load"] is not None]
        lines.append(
            f"| {model}{'' if equal[model] else ' (results NOT equal)'} | {ops[model]:,} | {times['single'] * 1e3:.1f} | {times['expert'] * 1e3:.1f} | {_of([times[s] * 1e3 for s in seeds], '.1f')} | "
            f"{_of(said, '.2f')} | {_of(gains['virtual_s'], '.2f')} | {_of(gains['wall_s'], '.2f')} | {error:.1%} | {f'{min(load):.1f} to {max(load):.1f}' if load else 'not known'} |"
        )
    return "\n".join(lines) + "\n"


def _of(xs: list[float], form: str) -> str:
    """Median and, of five or more, the interval of the middle nine tenths."""
    xs = sorted(xs)
    cut = len(xs) // 20
    return f"{statistics.median(xs):{form}} [{xs[cut]:{form}}, {xs[-1 - cut]:{form}}]"


def main(config: str, out: str) -> int:
    with open(config, encoding="utf-8") as f:
        c = json.load(f)
    records: list[dict[str, Any]] = []
    ops: dict[str, int] = {}
    equal: dict[str, bool] = {}
    for name, k in c["models"].items():
        with tempfile.TemporaryDirectory() as folder:
            m = prepare(name, k["model"], k["args"], c["devices"], c["realtime"], folder)
            plans = {"single": schedule.single(m.program), "expert": m.search("expert", "human", 1, 1)}
            plans |= {f"seed {s}": m.search(f"seed-{s}", None, s, c["evaluations"]) for s in c["seeds"]}
            ops[name] = len(m.program.ops)
            equal[name] = all(state.equal(m.meter.reference(s), m.meter._first_step(s)) for s in plans.values())
            records += measure(m, plans, c["rounds"], c["steps"], c["realtime"])
    with open(os.path.join(out, "gnmt.jsonl"), "w", encoding="utf-8") as f:
        f.writelines(json.dumps(r) + "\n" for r in records)
    text = table(records, ops, equal)
    with open(os.path.join(out, "gnmt.md"), "w", encoding="utf-8") as f:
        f.write(text)
    print(text)
    return 0 if all(equal.values()) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
