"""Measured steps of schedules, in the form of docs/pytorch.md, `placer step measurement 1`."""

from __future__ import annotations

import dataclasses
import functools
from typing import IO, Any, Callable, Sequence

import torch

from placer_runtime import serve as protocol
from placer_runtime.serve import FORMAT
from placer_runtime.serve import six as _r

from . import clock, schedule, state as states
from .errors import FormatError, NoMemoryError
from .graph import kind
from .schedule import Schedule
from .program import SOURCES, Program, Ref, Spec
from .run_inprocess import InProcess
from .run_workers import Workers, observe
from .shared import compact
from .state import Tensors
from .steps import Record, Steps
from .streams import more_queues

@dataclasses.dataclass(frozen=True)
class Options:
    """steps of a round, behind one that is dropped; rounds; which clock decides."""

    steps: int = 5
    repeats: int = 2
    clock: str = ""  # virtual where empty; of plans with a GPU the wall clock, which is all there is
    trace: bool = False
    check: bool = True  # compare the bits of the results with one device's
    realtime: bool = False
    brief: bool = False  # without devices, classes and trace, which take steps of their own

    def with_request(self, r: dict[str, Any]) -> Options:
        return dataclasses.replace(self, **{k: r[k] for k in ("steps", "repeats", "clock", "trace", "check", "brief") if k in r})


class Meter:
    """Measures schedules of one program: on CPU devices by a worker process each, with a
    GPU among them in this process. The results that a schedule has to equal come from a
    run of the same runner on one device."""

    def __init__(self, p: Program, state: Tensors | None = None, batch: Tensors | None = None):
        self.program = p
        self.state = state if state is not None else states.example(p)
        self.batch = batch if batch is not None else states.batch(p)
        self.kept = list(p.gradients.values())
        self._references: dict[str, list[torch.Tensor] | str] = {}  # by kind of device

    @functools.cached_property
    def specs(self) -> dict[Ref, Spec]:
        """Shapes and strides as they are when run, by one step on the CPU."""
        return observe(self.program, self.state, self.batch)[0]

    def reference(self, s: Schedule) -> list[torch.Tensor] | str:
        """Outputs, gradients and state of one device like those of s behind its first
        step, or why there are none to equal."""
        d = next((d for d in s.devices if on_gpu(d)), s.devices[0])
        kind = "gpu" if on_gpu(d) else "cpu"
        if kind not in self._references:
            self._references[kind] = self._on_one(d)
        return self._references[kind]

    def _on_one(self, device: str) -> list[torch.Tensor] | str:
        one = schedule.single(schedule.ops(self.program), device=device)
        try:
            got = self._first_step(one)
        except NoMemoryError:
            return f"the step does not fit on {device} alone"
        # some of a GPU's kernels add in an order that differs from run to run
        if on_gpu(device) and not states.equal(got, self._first_step(one)):
            return f"the results of {device} alone differ from run to run"
        return got

    def _runner(self, s: Schedule, *, keep: Sequence[Ref] = (), trace: str = "", realtime: bool = False) -> Workers | InProcess:
        if any(on_gpu(d) for d in s.devices):
            return InProcess(self.program, s, self.state, self.batch, keep=keep, trace=trace != "")
        return Workers(self.program, s, self.state, self.batch, keep=keep, specs=self.specs, trace=trace, realtime=realtime)

    def _first_step(self, s: Schedule) -> list[torch.Tensor]:
        with self._runner(s, keep=self.kept) as w:
            w.run(1)
            return [x.cpu() for x in (*w.results, *w.state.values())]

    def measure(self, s: Schedule, o: Options = Options()) -> dict[str, Any]:
        """The measurement of s as a document. Raises RunError where it fails, NoMemoryError
        where it does not fit."""
        gpus = [d for d in s.devices if on_gpu(d)]
        by = o.clock or (clock.WALL if gpus else clock.VIRTUAL)
        if by not in (clock.WALL, clock.VIRTUAL):
            raise FormatError(f"clock {by!r}: want wall or virtual")
        if gpus and (by == clock.VIRTUAL or o.realtime):
            raise FormatError(f"{'clock virtual' if by == clock.VIRTUAL else 'realtime'}: goes with CPU devices alone, the plan has {gpus[0]}")
        load = clock.Load()
        best: Steps | None = None
        rounds = []
        for _ in range(o.repeats):
            with self._runner(s, realtime=o.realtime) as w:
                w.run(1)
                got = w.run(o.steps)
            rounds.append(min(self._by(got, by)))
            if best is None or rounds[-1] <= min(rounds):
                best = got
        assert best is not None
        others = load.others()
        series = self._by(best, by)
        doc: dict[str, Any] = {
            "format": FORMAT,
            "method": s.method,
            "step_time_s": min(series),
            "predicted_s": s.predicted_s,
            "clock": by,
            "realtime": o.realtime,
            "wall_s": _round(best.wall_s),
            "virtual_s": _round(best.virtual_s),
            "rounds_s": _round(rounds),
            "spread": round(clock.spread(series), 4),
            "load": None if others is None else round(others, 3),
        }
        if s.fused:
            doc["unfused"] = s.fused
        if not o.brief:
            records = self._traced(s, by, o.realtime)
            doc["devices"] = self._devices(s, best, series.index(min(series)), records)
            doc["classes"] = self._classes(s, records)
            if o.trace:
                doc["trace"] = self._trace(s, records)
        if o.check:
            want = self.reference(s)
            if isinstance(want, str):
                doc["not_compared"] = want
            else:
                doc["equal"] = states.equal(want, self._first_step(s))
        return doc

    def _traced(self, s: Schedule, by: str, realtime: bool) -> Records:
        """The middle one of three steps with a clock reading around each op."""
        with self._runner(s, trace=by, realtime=realtime) as w:
            w.run(1)
            traced = [w.run(1) for _ in range(3)]
        return sorted(traced, key=lambda t: self._by(t, by)[0])[len(traced) // 2].records

    @staticmethod
    def _by(steps: Steps, name: str) -> list[float]:
        return steps.wall_s if name == clock.WALL else steps.virtual_s

    def _bytes(self, s: Schedule, r: Ref) -> int:
        """Of r where it crosses. On GPUs by its captured strides: a step on the CPU would tell
        no more of theirs."""
        spec = (None if any(on_gpu(d) for d in s.devices) else self.specs.get(r)) or self.program.spec(r)
        return compact(torch.empty_strided(spec.shape, spec.stride, dtype=spec.dtype, device="meta")).numel() * spec.dtype.itemsize

    def _devices(self, s: Schedule, steps: Steps, at: int, records: Records) -> list[dict[str, Any]]:
        p = self.program
        crossing = {(r, s.device[i]) for i, o in enumerate(p.ops) for r in o.inputs() if s.device[r.op] != s.device[i]}
        sent = {r for r, _ in crossing}
        found = []
        for d, name in enumerate(s.devices):
            busy = sum(end - start for i, out, start, end in records[d] if out < 0)
            copies = sum(end - start for i, out, start, end in records[d] if out >= 0)
            # a GPU has no processor time: its work is what it ran in the traced step
            work = steps.compute_s[at][d] if steps.compute_s else busy
            total = steps.worker_virtual_s[at][d] if steps.worker_virtual_s else steps.wall_s[at]
            found.append(
                {
                    "name": name,
                    "ops": sum(1 for i, x in enumerate(s.device) if x == d and p.ops[i].role not in SOURCES),
                    "busy_s": _r(busy),
                    "copy_s": _r(copies),
                    "work_s": _r(work),
                    "wait_s": _r(max(0.0, total - work)),
                    "sent_bytes": sum(self._bytes(s, r) for r in sent if s.device[r.op] == d),
                    "received_bytes": sum(self._bytes(s, r) for r, to in crossing if to == d),
                }
            )
        return found

    def _classes(self, s: Schedule, records: Records) -> list[dict[str, Any]]:
        sums: dict[tuple[str, int], list[float]] = {}
        for d, rows in enumerate(records):
            for i, out, start, end in rows:
                if out < 0 and self.program.ops[i].role not in SOURCES:
                    sums.setdefault((kind(self.program, self.program.ops[i]), d), []).append(end - start)
        return [{"class": k, "device": s.devices[d], "ops": len(v), "seconds": _r(sum(v))} for (k, d), v in sorted(sums.items())]

    def _trace(self, s: Schedule, records: Records) -> list[dict[str, Any]]:
        readers: dict[Ref, set[int]] = {}
        for i, o in enumerate(self.program.ops):
            for r in o.inputs():
                if s.device[r.op] != s.device[i]:
                    readers.setdefault(r, set()).add(s.device[i])
        events = []
        for d, rows in enumerate(records):
            for i, out, start, end in rows:
                e: dict[str, Any] = {"op": self.program.ops[i].name, "device": s.devices[d], "start_s": _r(start), "end_s": _r(end)}
                if out >= 0:
                    r = Ref(i, out)
                    e.update(output=out, to=[s.devices[x] for x in sorted(readers[r])], bytes=self._bytes(s, r), send=True)
                events.append(e)
        return events


Records = list[list[Record]]


def on_gpu(device: str) -> bool:
    """Whether a plan's device is no core."""
    return not device.startswith("cpu")


def answer(meter: Meter, request: dict[str, Any], o: Options) -> dict[str, Any]:
    """The measurement that a request asks for, or {"id", "error"}."""
    return protocol.answer(request, _measuring(meter, o))


def _measuring(meter: Meter, o: Options) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What measures the schedule of a request."""
    return lambda r: meter.measure(schedule.requested(schedule.ops(meter.program), r), o.with_request(r))


def serve(meter: Meter, o: Options, requests: IO[str], answers: IO[str]) -> None:
    """Answers requests, one JSON document a line, until they end."""
    more_queues()  # the GPUs' names begin CUDA
    devices = [f"cpu:{k}" for k in range(len(protocol.cores()))]
    gpus = [torch.cuda.get_device_name(k) for k in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    devices += [f"gpu:{k}" for k in range(len(gpus))]
    protocol.serve("torch", torch.__version__, len(meter.program.ops), devices, gpus, True, _measuring(meter, o), requests, answers)


def _round(xs: Sequence[float]) -> list[float]:
    return [_r(x) for x in xs]
