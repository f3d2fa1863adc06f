"""Times of a step's nodes on a core, `placer times 1`, and the host as `placer machine 1`."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any

from placer_runtime import clock
from placer_runtime.files import write_text

from . import schedule
from .crossing import Crossing
from .run import Runner
from .step import Step

LEAST = 1e-9  # an op's time in a file is positive


@dataclasses.dataclass
class Profile:
    """seconds of each node, the executor's share in it; step_s: the least step without
    stats, to which they add up; executor_s: the share of a node; spread: (third quartile
    - first) / median of the node's times over the traced steps."""

    seconds: list[float]
    spread: list[float]
    step_s: float
    executor_s: float
    steps: int


def on_core(s: Step, *, steps: int = 10, realtime: bool = False) -> Profile:
    """Times on one core, in the order of the critical paths, for that is how plans run,
    and the order decides what the caches hold. A node's time is the lower quartile of
    those in TensorFlow's step stats; what the least step without stats takes beyond
    their sum is the executor's, the same for each node that runs (a Const does not)."""
    ops = schedule.ops(s)
    with Runner(s, schedule.single(ops), realtime=realtime) as r:
        r.run(2)
        rough = [0.0] * len(s.graph.node)
        for x in r.traced():
            if x.node in s.index:
                rough[s.index[x.node]] = x.end - x.start
    found: list[list[float]] = [[] for _ in rough]
    plain = []
    with Runner(s, schedule.single(ops, schedule.critical_path_order(ops, rough)), realtime=realtime) as r:
        r.run(2)
        for _ in range(steps):
            for x in r.traced():
                if x.node in s.index:
                    found[s.index[x.node]].append(x.end - x.start)
            plain += r.run(2)
    raw = [sorted(c)[len(c) // 4] if c else 0.0 for c in found]
    step = min(plain)
    runs = [n.op != "Const" for n in s.graph.node]
    executor = (step - sum(raw)) / max(1, sum(runs))
    if executor >= 0:
        seconds = [x + executor * r for x, r in zip(raw, runs)]
    else:
        seconds = [x * step / sum(raw) for x in raw]
    return Profile(seconds, [clock.spread(c) for c in found], step, max(0.0, executor), 3 * steps + 5)


def times_doc(graph_hash: str, p: Profile, c: Crossing, count: int) -> dict[str, Any]:
    """`placer times 1` (docs/formats.md)."""
    return {
        "format": "placer times 1",
        "graph": graph_hash,
        "source": f"placer_tensorflow: {p.steps} steps, step stats and {p.executor_s * 1e6:.2f} us of the executor a node, which add up to a step of {p.step_s * 1e3:.3f} ms",
        "bandwidth": _four(c.receive_bandwidth),
        "latency": _four(c.send_s),
        "models": [{"name": "core", "cpu": True, "count": count, "memory": _memory(count), "seconds": [max(_four(x), LEAST) for x in p.seconds]}],
    }


def machine_doc(c: Crossing, count: int) -> dict[str, Any]:
    """count cores of this host as logical devices cpu:0... of TensorFlow."""
    return {
        "format": "placer machine 1",
        "name": f"tensorflow{count}",
        "note": "Logical CPU devices of one TensorFlow session, a thread each; buffers are shared, the rendezvous costs. Measured by placer_tensorflow.",
        "models": {
            "core": {
                "kind": "cpu",
                "capacity": _memory(count),
                "memory_bandwidth": _rate(c.stream),
                "peak": {"f32": f"{c.flops / 1e9:.4g} GFLOP/s"},
                "launch": "1 us",
                "sms": 1,
                "source": "placer_tensorflow profile: products and negations among others; launch: an assumption, times have it",
            }
        },
        "devices": [{"name": f"cpu:[0-{count - 1}]" if count > 1 else "cpu:0", "model": "core"}],
        "cables": [
            {
                "ends": [f"cpu:{a}", f"cpu:{b}"],
                "bandwidth": "1000 GB/s",
                "latency": _time(c.send_s),
                "occupies": "sender",
                "delivery": _time(c.delivery_s),
                "receive_bandwidth": _rate(c.receive_bandwidth),
                "source": "placer_tensorflow profile: chains to and fro between two devices; nothing is copied",
            }
            for a in range(count)
            for b in range(a + 1, count)
        ],
    }


def write(path: str, doc: dict[str, Any]) -> None:
    write_text(path, json.dumps(doc) + "\n")


def _memory(count: int) -> str:
    return f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') // count} B"


def _rate(x: float) -> str:
    return f"{x / 1e9:.4g} GB/s"


def _time(x: float) -> str:
    return f"{x * 1e6:.4g} us"


def _four(x: float) -> float:
    return float(f"{x:.4g}")
