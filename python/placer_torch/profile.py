"""Times of a program's ops on a device, and `placer times 1`."""

from __future__ import annotations

import dataclasses
import json
import statistics
from typing import Any

import torch

from . import clock, schedule
from placer_runtime.files import write_text
from .schedule import Schedule
from .program import SOURCES, Program, Ref, Spec
from .run_workers import Workers
from .state import Tensors


@dataclasses.dataclass
class Profile:
    """`seconds` and `spread` per op; spread is (third quartile - first) / median
    over the recorded steps. `step_s` is the step without a clock around each op,
    to which the ops' times are scaled; `scale` is the factor. `steps` were run
    in all. `stable`: the last two steps changed the least step by under 2%. `issue_s`:
    what the host takes to issue the step's ops to a GPU; of a core it is in `seconds`."""

    seconds: list[float]
    spread: list[float]
    step_s: float
    scale: float
    steps: int
    stable: bool
    issue_s: float = 0.0


STEPS = 10  # at most, warm-up included
STABLE = 0.02


def on_core(p: Program, state: Tensors, batch: Tensors, specs: dict[Ref, Spec] | None = None, *, core: int | None = None, steps: int = STEPS, realtime: bool = False) -> Profile:
    """Times on one CPU core in processor time, which other load on the host
    hardly enters. The ops are timed in the order of their critical paths, for
    that is how plans run, and the order decides what the caches hold: two steps
    in the program's order give that order, and at most `steps` the times, a
    third of them without a clock around each op."""
    cores = None if core is None else [core]

    def workers(s: Schedule, trace: str) -> Workers:
        return Workers(p, s, state, batch, specs=specs, cores=cores, trace=trace, realtime=realtime)

    ops = schedule.ops(p)
    first = schedule.single(ops)
    with workers(first, clock.VIRTUAL) as w:
        w.run(1)
        rough = [0.0] * len(p.ops)
        for i, _, start, end in w.run(1).records[0]:
            rough[i] = end - start
    s = schedule.single(ops, schedule.critical_path_order(ops, rough))
    plain = max(3, steps // 3)
    rows: list[list[float]] = []
    least: list[float] = []
    sources = [k for k, i in enumerate(s.order) if p.ops[i].role in SOURCES]
    stable = False
    with workers(s, clock.VIRTUAL) as w:
        w.run(1)
        while len(rows) < steps - plain - 1 and not stable:
            rows.append([end - start for _, _, start, end in w.run(1).records[0]])
            least.append(min(sum(r) for r in rows))
            stable = len(rows) >= 4 and least[-2] - least[-1] <= STABLE * least[-1]
    with workers(s, "") as w:
        w.run(1)
        step = min(w.run(plain - 1).virtual_s)
    columns = list(zip(*rows))
    # a source does nothing, so its interval is what the clock adds
    empty = statistics.median(min(columns[k]) for k in sources) if sources else 0.0
    raw = [0.0 if p.ops[i].role in SOURCES else max(0.0, min(c) - empty) for i, c in zip(s.order, columns)]
    scale = step / sum(raw)
    seconds, spread = [0.0] * len(raw), [0.0] * len(raw)
    for i, x, c in zip(s.order, raw, columns):
        seconds[i], spread[i] = x * scale, clock.spread(c)
    return Profile(seconds, spread, step, scale, 2 + 1 + len(rows) + plain, stable)


def times_doc(graph_hash: str, profile: Profile, *, model: str, count: int, memory: str, cpu: bool, bandwidth: float, latency: float) -> dict[str, Any]:
    """`placer times 1` (docs/formats.md). bandwidth in bytes a second, latency in seconds."""
    kind: dict[str, Any] = {"name": model}
    if cpu:
        kind["cpu"] = True
    kind.update(count=count, memory=memory, seconds=[max(_round(x), LEAST) for x in profile.seconds])
    return {
        "format": "placer times 1",
        "graph": graph_hash,
        "source": f"placer_torch: {profile.steps} steps, the ops' times scaled by {profile.scale:.3f} to a step of {profile.step_s * 1e3:.3f} ms without clocks",
        "bandwidth": _round(bandwidth),
        "latency": _round(latency),
        "models": [kind],
        **({"issue_s": _round(profile.issue_s)} if profile.issue_s else {}),
    }


LEAST = 1e-9  # an op's time in a file is positive; a source takes none


def _round(x: float) -> float:
    return float(f"{x:.4g}")


def write_times(path: str, doc: dict[str, Any]) -> None:
    write_text(path, json.dumps(doc) + "\n")


