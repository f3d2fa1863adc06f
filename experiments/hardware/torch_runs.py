"""Captured PyTorch steps by the runner of placer_torch, on parts of one GPU and on all GPUs.

    PYTHONPATH=python python3 torch_runs.py FOLDER OUT.json [MODEL...]

FOLDER/MODEL/program.pt is what capture_torch_models.py wrote. Of every model:

  one        the step on the first GPU, and what the host takes to issue it
  parts      on two logical devices of it, which share its multiprocessors: half of the
             ops in the order of the graph on each, and co-location groups on random ones
  gpus       the same on two GPUs, where there are two, with the bytes that cross

Each with the least of two rounds of five steps, and whether results have the bits of
one GPU's. What fails is told in the document, and the next model goes on.
"""
from __future__ import annotations

import json
import os
import random
import sys
from typing import Any

import torch

from placer_torch import graph, profile_cuda, schedule
from placer_torch.measure import Meter, Options
from placer_torch.program import Program, load
from placer_torch.schedule import Schedule


def placements(p: Program, devices: list[str]) -> dict[str, Schedule]:
    """Halves of the graph, and every group of ops on a device by chance."""
    o, n = schedule.ops(p), len(p.ops)
    rng, first, chosen = random.Random(1), {}, {}  # type: random.Random, dict[int, int], dict[int, int]
    groups = [g or -i - 1 for i, g in enumerate(graph.groups(p))]
    halves = [first.setdefault(g, 2 * i // n) for i, g in enumerate(groups)]
    by_chance = [chosen.setdefault(g, rng.randrange(2)) for g in groups]
    return {"halves": schedule.make(o, halves, devices), "random": schedule.make(o, by_chance, devices)}


def batch(p: Program) -> dict[str, torch.Tensor]:
    """The batch, with images drawn that capture_torch_models.py leaves out."""
    found = dict(p.batch)
    for i in p.sources("batch"):
        (s,) = p.ops[i].outputs
        assert s is not None
        found.setdefault(p.ops[i].name, torch.randn(s.shape).to(s.dtype))
    return found


def measured(meter: Meter, s: Schedule) -> dict[str, Any]:
    got = meter.measure(s, Options())
    kept = {k: got[k] for k in ("step_time_s", "rounds_s", "spread", "equal", "not_compared") if k in got}
    return {**kept, "sent_bytes": sum(d["sent_bytes"] for d in got["devices"]), "busy_s": [d["busy_s"] for d in got["devices"]]}


def measure(p: Program) -> dict[str, Any]:
    meter = Meter(p, batch=batch(p))
    profile = profile_cuda.on_cuda(p, meter.state, meter.batch, torch.device("cuda", 0))
    out: dict[str, Any] = {"calls": sum(o.role == "call" for o in p.ops), "issue_s": profile.issue_s, "graph_s": profile.step_s}
    out["one"] = measured(meter, schedule.single(schedule.ops(p), device="cuda:0"))
    out["parts"] = {k: measured(meter, s) for k, s in placements(p, ["cuda:0/0", "cuda:0/1"]).items()}
    if torch.cuda.device_count() > 1:
        out["gpus"] = {k: measured(meter, s) for k, s in placements(p, ["cuda:0", "cuda:1"]).items()}
    return out


def main() -> None:
    folder, target = sys.argv[1:3]
    doc: dict[str, Any] = {"gpus": [torch.cuda.get_device_name(k) for k in range(torch.cuda.device_count())], "torch": torch.__version__, "models": {}}
    for model in sys.argv[3:] or sorted(os.listdir(folder)):
        try:
            doc["models"][model] = measure(load(os.path.join(folder, model, "program.pt")))
        except Exception as e:  # noqa: BLE001
            doc["models"][model] = {"error": (str(e).splitlines() or [repr(e)])[0][:300]}
        print(model, json.dumps(doc["models"][model]), flush=True)
        torch.cuda.empty_cache()
        with open(target, "w") as f:
            json.dump(doc, f, indent=1)
            f.write("\n")


main()
