"""The order among GPUs, with streams that know what comes before what."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator

import models
import pytest
import torch
from test_run import SMALL, hasty

from placer_torch import capture, graph, run_inprocess
from placer_torch import state as states
from placer_torch.program import Ref
from placer_torch.run_inprocess import InProcess
from placer_torch.streams import Streams


class Stream:
    """before: the events that have to happen before what is issued next."""

    def __init__(self, device: torch.device):
        self.device, self.before = device, frozenset[Any]()

    def wait_event(self, e: Event) -> None:
        self.before |= e.before

    def wait_stream(self, s: Stream) -> None:
        self.before |= s.before

    def record_event(self) -> Event:
        e = Event()
        e.record(self)
        return e


class Event:
    stream: Stream
    host = frozenset[Any]()  # what the host has waited for, so that all it issues comes behind it

    def __init__(self, enable_timing: bool = False):
        self.before = frozenset[Any]()

    def record(self, s: Stream) -> None:
        s.before |= {self} | Event.host
        self.stream, self.before = s, s.before

    def synchronize(self) -> None:
        Event.host |= self.before

    def elapsed_time(self, other: Event) -> float:
        return float(len(other.before) - len(self.before))


class Cuda:
    """torch.cuda of a host with any number of GPUs. Its tensors are the CPU's."""

    Stream, Event = Stream, Event

    def __init__(self) -> None:
        self.current: dict[torch.device, Stream] = {}
        self.device_index = 1
        self.entered: list[Stream] = []
        self.copied: list[Event] = []
        Event.host = frozenset()

    def current_device(self) -> int:
        return self.device_index

    def set_device(self, k: int) -> None:
        self.device_index = k

    def current_stream(self, d: torch.device) -> Stream:
        return self.current.setdefault(d, Stream(d))

    def set_stream(self, s: Stream) -> None:
        self.current[s.device], self.device_index = s, s.device.index

    @contextlib.contextmanager
    def stream(self, s: Stream) -> Iterator[None]:
        before = self.current_stream(s.device)
        self.set_stream(s)
        self.entered.append(s)
        yield
        self.entered.pop()
        self.set_stream(before)

    def clone(self, x: torch.Tensor, to: torch.device) -> torch.Tensor:
        """torch's copy: the current streams of both ends wait for each other, and the host
        for what it is to have itself."""
        e = Event()
        e.before = frozenset({e}).union(*(s.before for s in self.entered))
        for s in self.entered:
            s.before = e.before
        self.copied.append(e)
        if to.type == "cpu":
            e.synchronize()
        return x.clone()

    def synchronize(self, _: torch.device) -> None:
        pass

    def device(self, _: torch.device) -> Any:
        return contextlib.nullcontext()


@pytest.mark.parametrize("kinds", [["cuda:0", "cuda:1"], ["cuda:0", "cuda:0"], ["cuda:0", "cuda:1", "cuda:0"], ["cuda:0", "cpu"], ["cpu", "cuda:0", "cuda:1"]])
def test_order(kinds: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What an op reads has happened before it, and who else reads what it overwrites has
    read it; a copy is on no stream of ops; the caller's streams are what they were, and
    come behind the step."""
    cuda, recorded = Cuda(), []
    monkeypatch.setattr(run_inprocess, "like", cuda.clone)
    monkeypatch.setattr(Streams, "_on_gpu", lambda *_: True)
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda x, s: recorded.append((x.data_ptr(), s)))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    model, loss, batch, optimizer = models.lstm(**SMALL["lstm"])
    p = capture(model, loss, batch, optimizer)
    s = hasty(p, len(kinds), 1, {j for js in graph.update_control(p).values() for j in js})
    devices = [torch.device(k) for k in kinds]
    streams = Streams(devices, cuda)
    mine = {d: cuda.current_stream(d) for d in streams.gpus}
    state, data = states.of_model(p, model), states.batch(p)
    plain = InProcess(p, s, state, data)
    plain.run(2)
    with InProcess(p, s, state, data, devices=[torch.device("cpu")] * len(kinds), streams=streams, trace=True) as r:
        steps = r.run(2)
        assert torch.equal(r.results[0], plain.results[0]) and len(steps.wall_s) == 2
        assert (r.copied_bytes > 0) == (len(set(kinds)) > 1)
        assert r._trace is not None
        ops = {op: (start, end) for op, out, start, end in r._trace if out < 0}
        sends = [(op, start, end) for op, out, start, end in r._trace if out >= 0]
        assert sorted(op for rows in steps.records for op, out, _, _ in rows if out < 0) == sorted(ops)
    for i, (start, _) in ops.items():
        for j in {x.op for x in p.ops[i].inputs()} & set(ops):
            if kinds[s.device[i]] != "cpu" and kinds[s.device[j]] != "cpu":
                assert ops[j][1].at in start.at.before, (p.ops[i].name, p.ops[j].name)
    overwritten = 0
    for i, (start, _) in ops.items():
        if p.ops[i].role != "update" or kinds[s.device[i]] == "cpu":
            continue
        held = {k for k in range(len(p.ops)) if p.root[k] == next(p.ops[i].inputs()).op}
        beside = [j for j in ops if not p.ops[j].view and held & {r.op for r in p.ops[j].inputs()} and j != i and kinds[s.device[j]] == kinds[s.device[i]]]
        copied = [end for op, _, end in sends if op in held]
        overwritten += len(copied) + sum(s.device[j] != s.device[i] for j in beside)
        assert all(ops[j][1].at in start.at.before for j in beside), f"{p.ops[i].name} does not wait for a reader"
        assert all(end.at in start.at.before for end in copied), f"{p.ops[i].name} does not wait for a copy"
    assert overwritten
    on_ops = {id(start.at.stream) for i, (start, _) in ops.items() if kinds[s.device[i]] != "cpu"}
    for op, start, end in sends:
        if kinds[start.d] != "cpu":
            assert id(start.at.stream) not in on_ops and start.at.stream is end.at.stream
            assert op not in ops or ops[op][1].at in start.at.before
    assert (sends or len(set(kinds)) == 1) and recorded
    assert {d: cuda.current_stream(d) for d in streams.gpus} == mine and cuda.device_index == 1
    for i, (_, end) in ops.items():
        if kinds[s.device[i]] != "cpu":
            assert end.at in mine[devices[s.device[i]]].before


def test_a_copy_holds_up_no_ops() -> None:
    """Neither the source's next op nor what the other device runs meanwhile waits for a copy."""
    cuda = Cuda()
    streams = Streams([torch.device("cuda", 0), torch.device("cuda", 1)], cuda)
    x = torch.ones(1)

    def clone(y: torch.Tensor, d: torch.device) -> torch.Tensor:
        assert [e.device for e in cuda.entered] == [torch.device("cuda", 0), d], "torch copies on the source's current stream"
        return cuda.clone(y, d)

    streams.begin()
    streams.use(0)
    first = streams.mark(0)
    streams.done(0, 0)
    second = streams.mark(0)
    _, marks = streams.copy(x, Ref(0, 0), 0, 1, clone, timed=True)
    third, other = streams.mark(0), streams.mark(1)
    assert marks is not None
    assert first.at in marks[0].at.before and second.at not in marks[0].at.before, "the copy waits for more than its op"
    (copied,) = cuda.copied
    assert copied in marks[1].at.before and copied not in third.at.before, "the source's next op waits for the copy"
    assert copied in other.at.before, "the reader does not wait for the copy"


def test_a_fence_holds_up_what_overwrites() -> None:
    """Behind a fence the source's ops come behind the copy, and on the CPU the host does."""
    for kinds in ["cuda:0", "cuda:1"], ["cpu", "cuda:0"]:
        cuda = Cuda()
        streams = Streams([torch.device(k) for k in kinds], cuda)
        streams.begin()
        streams.done(0, 0)
        streams.copy(torch.ones(1), Ref(0, 0), 0, 1, cuda.clone, fenced=True)
        (end,) = streams._copied.values()
        streams.fence(0, [], [(Ref(0, 0), 1)])
        (copied,) = cuda.copied
        assert copied in end.before
        assert copied in (Event.host if kinds[0] == "cpu" else streams.mark(0).at.before)


def test_the_step_ends_behind_its_copies() -> None:
    """What the caller issues next, on the source too, comes behind a copy."""
    cuda = Cuda()
    devices = [torch.device("cuda", 0), torch.device("cuda", 1)]
    streams = Streams(devices, cuda)
    streams.begin()
    streams.done(0, 0)
    streams.copy(torch.ones(1), Ref(0, 0), 0, 1, cuda.clone)
    streams.end()
    (copied,) = cuda.copied
    assert all(copied in cuda.current_stream(d).before for d in devices)
