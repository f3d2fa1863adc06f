"""python -m placer_onnxruntime: profile a model for placer, and run its stages (docs/onnxruntime.md)."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from typing import Any, Sequence

import numpy as np

from placer_runtime import binary, clock, command
from placer_runtime.errors import FormatError
from placer_runtime.files import write_text

from . import pipeline, session


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns its exit code."""
    return command.run(_parser(), argv)


def _parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m placer_onnxruntime", description="Profiles ONNX models for placer and runs their stages, one session on each core.")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    c = commands.add_parser("profile", help="measure a model's nodes on one core; writes times.json and machine.json")
    c.add_argument("model", metavar="MODEL.onnx")
    c.add_argument("--dim", action="append", default=[], metavar="NAME=N", help="size of a named dimension (default 1)")
    c.add_argument("--devices", type=int, default=2, metavar="N", help="cores of the machine file, one for each stage (default 2)")
    c.add_argument("-o", "--output", required=True, metavar="DIR", help="folder for times.json and machine.json")
    c.set_defaults(run=_profile)
    c = commands.add_parser("run", help="run the stages as a pipeline and compare with one session on one core")
    c.add_argument("stages", metavar="STAGES.json", help="file that placer export --to onnx wrote")
    c.add_argument("--model", required=True, metavar="MODEL.onnx", help="the whole model")
    c.add_argument("--dim", action="append", default=[], metavar="NAME=N", help="as for profile")
    c.add_argument("--requests", type=int, default=40, help="requests of a round (default 40)")
    c.add_argument("--rounds", type=int, default=3, help="rounds of both in turn, of which the median gain counts (default 3)")
    c.add_argument("--predicted", type=float, help="predicted seconds per request, from placer simulate --objective throughput")
    c.set_defaults(run=_run)
    return top


def _sizes(given: list[str]) -> dict[str, int]:
    sizes = {}
    for d in given:
        name, _, n = d.partition("=")
        if not n.isdigit() or int(n) < 1:
            raise FormatError(f"--dim {d}: want a name and a size, as batch=4")
        sizes[name] = int(n)
    return sizes


def _profile(a: argparse.Namespace) -> int:
    feed = session.example(session.open_session(a.model), _sizes(a.dim))
    seconds, request = session.node_seconds(a.model, feed)
    dims = [x for d in a.dim for x in ("--dim", d)]
    with tempfile.TemporaryDirectory() as folder:
        ordered = os.path.join(folder, "graph.json")
        binary.run("import", "--graph", a.model, *dims, "-o", ordered)
        graph_hash = json.loads(binary.run("import", "--graph", a.model, *dims, "--json"))["hash"]
        with open(ordered, encoding="utf-8") as f:
            names = [o["name"] for o in json.load(f)["ops"]]
    memory = f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') // a.devices} B"
    # a tensor is copied into shared memory and read from it
    bandwidth, latency = _copies()
    listed = [max(float(f"{seconds.get(n, 0):.4g}"), 1e-9) for n in names]
    times = {"format": "placer times 1", "graph": graph_hash, "source": f"ONNX Runtime's profile, scaled to a request of {request * 1e3:.3f} ms", "bandwidth": bandwidth, "latency": latency, "models": [{"name": "core", "cpu": True, "count": a.devices, "memory": memory, "seconds": listed}]}
    machine = {
        "format": "placer machine 1", "name": f"sessions{a.devices}",
        "note": "Cores of one host, a session of ONNX Runtime each; tensors cross through shared memory. Measured by placer_onnxruntime.",
        "models": {"core": {"kind": "cpu", "capacity": memory, "memory_bandwidth": f"{bandwidth / 1e9:.4g} GB/s", "peak": {"f32": "50 GFLOP/s"}, "launch": "1 us", "sms": 1, "source": "copies; peak and launch: assumptions, times have them"}},
        "devices": [{"name": f"cpu:[0-{a.devices - 1}]", "model": "core"}],
        "cables": [{"ends": [f"cpu:{x}", f"cpu:{y}"], "bandwidth": f"{bandwidth / 1e9:.4g} GB/s", "latency": f"{latency * 1e6:.4g} us", "source": "copies"} for x in range(a.devices) for y in range(x + 1, a.devices)],
    }
    for name, doc in (("times.json", times), ("machine.json", machine)):
        write_text(os.path.join(a.output, name), json.dumps(doc) + "\n")
    missing = sorted(set(seconds) - set(names))
    print(json.dumps({"request_s": request, "nodes": len(seconds), "unknown": missing[:8]}))
    return 0


def _copies() -> tuple[float, float]:
    """Bytes a second and seconds of a copy of 1 MB and of one of nothing much."""
    import time

    def least(n: int) -> float:
        x, y = np.ones(n, "f"), np.zeros(n, "f")
        best = 1.0
        for _ in range(20):
            t = time.perf_counter()
            y[...] = x
            best = min(best, time.perf_counter() - t)
        return best

    small = least(16)
    return (4 << 18) / max(least(1 << 18) - small, 1e-9), small + 2e-6


def _run(a: argparse.Namespace) -> int:
    if a.requests < 2 or a.rounds < 1:
        raise FormatError(f"--requests {a.requests} --rounds {a.rounds}: want at least 2 and 1")
    parts = session.stages(a.stages)
    s = session.open_session(a.model)
    made = {o for p in parts for o in p.outputs}
    for o in s.get_outputs():
        if o.name not in made:
            raise FormatError(f"{a.stages}: no stage makes {o.name}, an output of {a.model}: export the stages from this model")
    feed, results = session.example(s, _sizes(a.dim)), [o.name for o in s.get_outputs()]
    cores = sorted(os.sched_getaffinity(0))
    load = clock.Load()
    one, many = [], []
    for _ in range(a.rounds):
        one.append(pipeline.one_session(a.model, feed, a.requests, cores[0]))
        many.append(pipeline.run(parts, feed, results, a.requests))
    gains = [x.request_s / y.request_s for x, y in zip(one, many)]
    same = all(np.array_equal(one[0].outputs[k], y.outputs[k]) for y in many for k in results)
    measured = statistics.median(y.request_s for y in many)
    doc: dict[str, Any] = {
        "stages": len(parts), "requests": a.requests, "rounds": a.rounds, "equal": same,
        "one_session_s": _six(statistics.median(x.request_s for x in one)), "pipeline_s": _six(measured),
        "gain": round(statistics.median(gains), 4), "gains": [round(g, 4) for g in gains], "load": load.others(),
    }
    if a.predicted:
        doc["predicted_s"], doc["error"] = a.predicted, round(a.predicted / measured - 1, 4)
    print(json.dumps(doc))
    return 0 if same else 1


def _six(x: float) -> float:
    return float(f"{x:.6g}")
