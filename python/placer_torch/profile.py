"""Times of a program's ops on a device, and `placer times 1`."""

from __future__ import annotations

import dataclasses
import json
import statistics
from typing import Any, Callable, NamedTuple

import torch

from . import clock, codegen, schedule
from .codegen import Code, name
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
    in all. `stable`: the last two steps changed the least step by under 2%."""

    seconds: list[float]
    spread: list[float]
    step_s: float
    scale: float
    steps: int
    stable: bool


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


def on_cuda(p: Program, state: Tensors, batch: Tensors, device: torch.device, *, steps: int = STEPS) -> Profile:
    """Times on a CUDA device: its own, with the host kept ahead of it, by events
    around each op on one stream. `step_s` is the whole step as one CUDA graph, to
    which the times are scaled; where it cannot be captured (random ops), their sum."""
    here = {k: v.to(device) for k, v in {**state, **p.constants, **batch}.items()}
    with torch.no_grad(), torch.cuda.device(device):
        run = _calls(p, device)
        for _ in range(2):
            _issue(p, run, here)
        extra = _event_seconds()
        rows = [_issue(p, run, here, ahead=True) for _ in range(max(3, min(5, steps - 2)))]
        captured = _captured_seconds(p, run, here)
    columns = list(zip(*rows))
    seconds, spread = [0.0] * len(p.ops), [0.0] * len(p.ops)
    for call, c in zip(run, columns):
        if not p.ops[call.op].view:
            seconds[call.op], spread[call.op] = max(0.0, statistics.median(c) - extra), clock.spread(c)
    whole = [sum(r) for r in rows]
    scale = captured / sum(seconds) if captured and sum(seconds) else 1.0
    return Profile([x * scale for x in seconds], spread, captured or sum(seconds), scale, steps, clock.spread(whole) < STABLE)


class _Call(NamedTuple):
    op: int
    inputs: list[Ref]
    function: Callable[..., list[Any]]


def _calls(p: Program, device: torch.device) -> list[_Call]:
    """Each op of p that runs as a function of its inputs and the optimizer's step."""
    found = []
    for i, o in enumerate(p.ops):
        if o.role in SOURCES:
            continue
        code = Code()
        code.names["seed"] = codegen.seeder([device])
        inputs = list(dict.fromkeys(o.inputs()))
        codegen.call(code, p, i, name, device)
        code.add("return [" + ", ".join(name(Ref(i, k)) for k in range(len(o.outputs))) + "]")
        found.append(_Call(i, inputs, code.function("def one(" + ", ".join([name(r) for r in inputs] + ["t"]) + "):", f"<op {o.name}>")))
    return found


AHEAD = 96  # ops that the host issues while the device waits
WAIT = 30_000_000  # clock cycles that it waits meanwhile, some 15 ms


def _issue(p: Program, run: list[_Call], here: Tensors, *, ahead: bool = False) -> list[float]:
    """One step on the current stream. ahead: seconds between the events around each
    call, every part of the step issued while the device is held back."""
    values: dict[Ref, torch.Tensor] = {Ref(i, 0): here[o.name] for i, o in enumerate(p.ops) if o.role in SOURCES}
    free = codegen.last_uses(p, list(range(len(p.ops))), set())
    seconds = []
    for at in range(0, len(run), AHEAD):
        part = run[at : at + AHEAD]
        events = []
        if ahead:
            events = [torch.cuda.Event(enable_timing=True) for _ in range(len(part) + 1)]
            torch.cuda.synchronize()
            torch.cuda._sleep(WAIT)
            events[0].record()
        for k, (i, inputs, one) in enumerate(part):
            values.update({Ref(i, j): x for j, x in enumerate(one(*[values[r] for r in inputs], 2))})
            if ahead:
                events[k + 1].record()
            for r in free.get(i, []):
                values.pop(r, None)
        if ahead:
            torch.cuda.synchronize()
            seconds += [a.elapsed_time(b) / 1e3 for a, b in zip(events, events[1:])]
    return seconds


def _event_seconds() -> float:
    """What an event behind a kernel adds to it: the time of a kernel of one number
    with one, less that of the same kernel as a node of a graph."""
    x = torch.ones(1, device="cuda")
    n = 200

    def kernels() -> None:
        for _ in range(n):
            x.add_(1)

    kernels()  # loads it, which waits for the device
    events = [torch.cuda.Event(enable_timing=True) for _ in range(n + 1)]
    for e in events:
        e.record()
    torch.cuda.synchronize()
    torch.cuda._sleep(WAIT)
    for e in events:
        e.record()
        x.add_(1)
    torch.cuda.synchronize()
    each = statistics.median(a.elapsed_time(b) / 1e3 for a, b in zip(events, events[1:]))
    return max(0.0, each - _graph_seconds(kernels) / n)


def _captured_seconds(p: Program, run: list[_Call], here: Tensors) -> float:
    """The step as one CUDA graph; 0 where it cannot be captured."""
    try:
        return _graph_seconds(lambda: _issue(p, run, here))
    except RuntimeError:
        torch.cuda.synchronize()
        return 0.0


def _graph_seconds(f: Callable[[], Any], repeats: int = 7) -> float:
    """The median of the times that f takes as one CUDA graph."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        f()
    took = []
    for _ in range(repeats + 1):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        a.record()
        graph.replay()
        b.record()
        b.synchronize()
        took.append(a.elapsed_time(b) / 1e3)
    return statistics.median(took[1:])


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
    }


LEAST = 1e-9  # an op's time in a file is positive; a source takes none


def _round(x: float) -> float:
    return float(f"{x:.4g}")


def write_times(path: str, doc: dict[str, Any]) -> None:
    write_text(path, json.dumps(doc) + "\n")


