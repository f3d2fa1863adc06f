"""Times on a CUDA device, with a clock of this test in place of the device's events."""

from __future__ import annotations

import contextlib
from typing import Any

import models
import pytest
import torch

from placer_torch import profile_cuda, state
from placer_torch.capture import capture
from placer_torch.program import Program


class Device:
    """A device on which an op takes 2 s and an event 1 s. Ops run on the CPU."""

    def __init__(self) -> None:
        self.now = 0.0

    def op(self) -> None:
        self.now += 2


class Event:
    device: Device

    def __init__(self, enable_timing: bool = False) -> None:
        self.at = 0.0

    def record(self) -> None:
        self.device.now += 1
        self.at = self.device.now

    def elapsed_time(self, other: Event) -> float:
        return (other.at - self.at) * 1e3

    def synchronize(self) -> None:
        pass


@pytest.fixture
def program() -> Program:
    return capture(*models.gpt2(1, 32, 2, 8, 50, 2), name="gpt")


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    d = Device()
    Event.device = d
    graphs: dict[int, float] = {}

    class Graph:
        def replay(self) -> None:
            d.now += graphs[id(self)]

    @contextlib.contextmanager
    def graph(g: Graph) -> Any:
        before = d.now
        yield
        graphs[id(g)], d.now = d.now - before, before

    add = torch.Tensor.add_

    def one(x: torch.Tensor, *args: Any) -> torch.Tensor:
        d.op()
        return add(x, *args)

    def ones(*size: int, device: str) -> torch.Tensor:
        return torch.full(size, 1.0)

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", graph)
    monkeypatch.setattr(torch.cuda, "device", lambda _: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: None)
    monkeypatch.setattr(torch.cuda, "_sleep", lambda _: None)
    monkeypatch.setattr(torch.Tensor, "add_", one)
    monkeypatch.setattr(torch, "ones", ones)
    return d


def test_ops_without_events(program: Program, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """An op's time has nothing of the event behind it; views take none; the sum is the captured step."""
    p = program
    calls = profile_cuda._calls

    def counted(p: Any, d: torch.device) -> Any:
        def slow(c: Any) -> Any:
            def run(*args: Any) -> Any:
                if not p.ops[c.op].view:
                    device.op()
                return c.function(*args)

            return c._replace(function=run)

        return [slow(c) for c in calls(p, d)]

    monkeypatch.setattr(profile_cuda, "_calls", counted)
    monkeypatch.setattr(torch.Tensor, "add_", torch.Tensor.__iadd__)  # an update is one op here
    monkeypatch.setattr(profile_cuda, "_event_seconds", lambda: 1.0)
    got = profile_cuda.on_cuda(p, state.example(p), state.batch(p), torch.device("cpu"))
    running = [i for i, o in enumerate(p.ops) if o.role not in ("parameter", "buffer", "slot", "batch", "const")]
    for i in running:
        assert got.seconds[i] == pytest.approx(0 if p.ops[i].view else 2, rel=0.02), p.ops[i].name
    events = 1  # the one in front of the graph, within the step
    assert 0 < got.issue_s < 60
    assert got.step_s == pytest.approx(sum(got.seconds)) == pytest.approx(2 * sum(not p.ops[i].view for i in running) + events) and got.stable


def test_event_seconds(device: Device) -> None:
    """What an event adds is what remains without the kernel's own time."""
    assert profile_cuda._event_seconds() == pytest.approx(1, rel=0.01)
