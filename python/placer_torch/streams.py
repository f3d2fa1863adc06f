"""The order among the devices of one process, by CUDA's streams and events."""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any, Callable, NamedTuple, Sequence

import torch

from .program import Ref

Stream = Any  # torch.cuda.Stream; None of a CPU device


def more_queues() -> None:
    """Asks CUDA for 32 hardware queues in the place of 8, where it has not begun and
    nobody asked for another number: streams of one queue wait for each other
    (docs/hardware.md)."""
    if not torch.cuda.is_initialized():
        os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")


class Mark(NamedTuple):
    """A moment on plan device d: an event there, or of a CPU device the host's time."""

    d: int
    at: Any


class Streams:
    """A stream for the ops of each plan device on a GPU, and one at either end of each
    ordered pair of devices for the copies between them: torch copies between GPUs on
    the source's current stream, and has the current streams of both wait for each other
    before and behind the copy, so that on the streams of the ops a copy would hold up
    both devices. CPU devices run in turn, when the host comes to them."""

    def __init__(self, devices: Sequence[torch.device], cuda: Any = torch.cuda):
        """devices: of the plan, several may be one. cuda: torch.cuda, or what stands for it."""
        self._devices, self._cuda = list(devices), cuda
        self._ops: list[Stream] = [self._stream(d) for d in range(len(self._devices))]
        self.gpus = list(dict.fromkeys(d for d in self._devices if d.type == "cuda"))  # each once
        self._ends: dict[tuple[int, int], tuple[Stream, Stream]] = {}
        self._done: dict[int, Any] = {}  # by op: recorded behind it
        self._copied: dict[tuple[Ref, int], Any] = {}  # by tensor and receiver: recorded behind the copy
        self._before: list[tuple[torch.device, Stream]] = []  # what was current when the step began
        self._current_device = 0  # likewise
        self._zero: dict[torch.device, Any] = {}
        self._host_zero = 0.0

    def _stream(self, d: int) -> Stream:
        return self._cuda.Stream(self._devices[d]) if self._devices[d].type == "cuda" else None

    def begin(self) -> None:
        """What follows on the devices comes behind what the caller has issued so far."""
        if not self.gpus:
            return
        self._current_device = self._cuda.current_device()
        self._before = [(d, self._cuda.current_stream(d)) for d in self.gpus]
        before = dict(self._before)
        for d, stream in zip(self._devices, self._ops):
            if stream is not None:
                stream.wait_stream(before[d])

    def end(self) -> None:
        """What the caller issues next comes behind the step, on the device and streams it had."""
        if not self.gpus:
            return
        before = dict(self._before)
        for d, stream in zip(self._devices, self._ops):
            if stream is not None:
                before[d].wait_stream(stream)
        for (a, _), (out, _) in self._ends.items():
            if out is not None:
                before[self._devices[a]].wait_stream(out)
        for _, stream in self._before:
            self._cuda.set_stream(stream)
        self._cuda.set_device(self._current_device)

    def use(self, d: int) -> None:
        """The ops that are issued next run on device d."""
        if self._ops[d] is not None:
            self._cuda.set_stream(self._ops[d])

    def done(self, op: int, d: int) -> None:
        """Op, issued last on d, is waited for elsewhere."""
        if self._ops[d] is not None:
            self._done[op] = self._ops[d].record_event()

    def shares(self, a: int, b: int) -> bool:
        """Whether a and b are logical devices of one GPU, between which nothing is copied."""
        return self._ops[b] is not None and self._devices[a] == self._devices[b]

    def fence(self, d: int, ops: Sequence[int], copies: Sequence[tuple[Ref, int]]) -> None:
        """What d runs next overwrites what the ops read (elsewhere, done was told of them)
        and what the copies copied (of a tensor for a device): it comes behind them."""
        for event in (*(self._done.get(i) for i in ops), *(self._copied.get(c) for c in copies)):
            if event is None:
                continue  # a CPU device's: the host was there
            if self._ops[d] is None:
                event.synchronize()
            else:
                self._ops[d].wait_event(event)

    def copy(self, x: torch.Tensor, r: Ref, a: int, b: int, clone: Callable[[torch.Tensor, torch.device], torch.Tensor], *, timed: bool = False, fenced: bool = False) -> tuple[torch.Tensor, tuple[Mark, Mark] | None]:
        """x, the tensor r of device a, for device b: clone(x, b's device), begun when r's op
        has ended. What b runs next waits for it, and nothing else does but a fence, where
        it is fenced. timed: with the moments of its beginning and end, where something is
        copied."""
        into, event = self._ops[b], self._done.get(r.op)
        if self.shares(a, b):  # only the order
            into.wait_event(event)
            self._used(x, into)
            return x, None
        if (a, b) not in self._ends:
            self._ends[a, b] = self._stream(a), self._stream(b)
        out, inlet = self._ends[a, b]
        if out is not None:
            out.wait_event(event)
            self._used(x, out)
        began = self._mark(a, out) if timed else None
        with self._current(out), self._current(inlet):
            y = clone(x, self._devices[b])
        marks = (began, self._mark(a, out)) if began else None
        end = out if out is not None else inlet
        if fenced and end is not None:
            self._copied[r, b] = end.record_event()
        if inlet is not None:
            into.wait_event(inlet.record_event())
            self._used(y, into)
        return y, marks

    def _used(self, x: torch.Tensor, stream: Stream) -> None:
        """The memory of x is not given to others before stream has come so far. A number
        that an op leaves on the host has none on a GPU."""
        if self._on_gpu(x):
            x.record_stream(stream)

    def _on_gpu(self, x: torch.Tensor) -> bool:
        return x.is_cuda

    def _current(self, stream: Stream) -> Any:
        return contextlib.nullcontext() if stream is None else self._cuda.stream(stream)

    # Clocks

    def synchronize(self) -> None:
        for d in self.gpus:
            self._cuda.synchronize(d)

    def zero(self) -> None:
        """Marks count from here. Every device has ended what it had."""
        self.synchronize()
        for d in self.gpus:
            with self._cuda.device(d):
                self._zero[d] = self._cuda.Event(enable_timing=True)
                self._zero[d].record(self._cuda.current_stream(d))
        self._host_zero = time.perf_counter()

    def mark(self, d: int) -> Mark:
        """The moment when device d has come as far as it was issued ops."""
        return self._mark(d, self._ops[d])

    def _mark(self, d: int, stream: Stream) -> Mark:
        if stream is None:
            return Mark(d, time.perf_counter())
        event = self._cuda.Event(enable_timing=True)
        event.record(stream)
        return Mark(d, event)

    def seconds(self, m: Mark) -> float:
        """From zero to the mark; devices have to be synchronized."""
        if self._ops[m.d] is None:
            return m.at - self._host_zero
        return self._zero[self._devices[m.d]].elapsed_time(m.at) / 1e3
