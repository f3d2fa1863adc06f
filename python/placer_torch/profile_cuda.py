"""Times of a program's ops on a GPU, by events."""

from __future__ import annotations

import statistics
import time
from typing import Any, Callable, NamedTuple

import torch

from . import clock, codegen
from .codegen import Code, name
from .profile import STABLE, STEPS, Profile
from .program import SOURCES, Program, Ref
from .state import Tensors


def on_cuda(p: Program, state: Tensors, batch: Tensors, device: torch.device, *, steps: int = STEPS) -> Profile:
    """Times on a CUDA device: its own, with the host kept ahead of it, by events
    around each op on one stream. `step_s` is the whole step as one CUDA graph, to
    which the times are scaled; where it cannot be captured (random ops), their sum.
    Raises torch.OutOfMemoryError where the device cannot hold the step."""
    here = {k: v.to(device) for k, v in {**state, **p.constants, **batch}.items()}
    with torch.no_grad(), torch.cuda.device(device):
        run = _calls(p, device)
        for _ in range(2):
            _issue(p, run, here)
        extra = _event_seconds()
        rows = [_call_seconds(p, run, here) for _ in range(max(3, min(5, steps - 2)))]
        captured = _captured_seconds(p, run, here)
        issue = min(_issue_seconds(p, run, here) for _ in range(3))
    columns = list(zip(*rows))
    seconds, spread = [0.0] * len(p.ops), [0.0] * len(p.ops)
    for call, c in zip(run, columns):
        if not p.ops[call.op].view:
            seconds[call.op], spread[call.op] = max(0.0, statistics.median(c) - extra), clock.spread(c)
    whole = [sum(r) for r in rows]
    scale = captured / sum(seconds) if captured and sum(seconds) else 1.0
    return Profile([x * scale for x in seconds], spread, captured or sum(seconds), scale, steps, clock.spread(whole) < STABLE, issue)


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


class _Step:
    """One step on the current stream, issued in parts that a queue of the device holds."""

    def __init__(self, p: Program, run: list[_Call], here: Tensors):
        self.parts = [run[at : at + AHEAD] for at in range(0, len(run), AHEAD)]
        self._values: dict[Ref, torch.Tensor] = {Ref(i, 0): here[o.name] for i, o in enumerate(p.ops) if o.role in SOURCES}
        self._free = codegen.last_uses(p, list(range(len(p.ops))), set())

    def issue(self, part: list[_Call], behind: Callable[[], None] = lambda: None) -> None:
        """Issues the part's calls, with what is to come behind each."""
        values = self._values
        for i, inputs, one in part:
            values.update({Ref(i, j): x for j, x in enumerate(one(*[values[r] for r in inputs], 2))})
            behind()
            for r in self._free.get(i, []):
                values.pop(r, None)


def _issue(p: Program, run: list[_Call], here: Tensors) -> None:
    """One step."""
    step = _Step(p, run, here)
    for part in step.parts:
        step.issue(part)


def _call_seconds(p: Program, run: list[_Call], here: Tensors) -> list[float]:
    """Seconds between the events around each call of a step, every part of which is
    issued while the device is held back."""
    step = _Step(p, run, here)
    seconds = []
    for part in step.parts:
        events = [torch.cuda.Event(enable_timing=True) for _ in range(len(part) + 1)]
        behind = iter(events)
        torch.cuda.synchronize()
        torch.cuda._sleep(WAIT)
        next(behind).record()
        step.issue(part, lambda: next(behind).record())
        torch.cuda.synchronize()
        seconds += [a.elapsed_time(b) / 1e3 for a, b in zip(events, events[1:])]
    return seconds


def _issue_seconds(p: Program, run: list[_Call], here: Tensors) -> float:
    """The host's time to issue one step, to a device that is never behind."""
    step = _Step(p, run, here)
    took = 0.0
    for part in step.parts:
        torch.cuda.synchronize()
        began = time.perf_counter()
        step.issue(part)
        took += time.perf_counter() - began
    return took


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
