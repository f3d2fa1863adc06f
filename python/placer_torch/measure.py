"""Measured steps of schedules, in the form of docs/pytorch.md, `placer step measurement 1`."""

from __future__ import annotations

import dataclasses
from typing import IO, Any, Sequence

import torch

from placer_runtime import serve as protocol
from placer_runtime.serve import FORMAT
from placer_runtime.serve import six as _r

from . import clock, schedule, state as states
from .errors import FormatError
from .graph import kind
from .schedule import Schedule
from .program import SOURCES, Program, Ref
from .run_workers import Steps, Workers, observe
from .shared import compact
from .state import Tensors

@dataclasses.dataclass(frozen=True)
class Options:
    """steps of a round, behind one that is dropped; rounds; which clock decides."""

    steps: int = 5
    repeats: int = 2
    clock: str = clock.VIRTUAL
    trace: bool = False
    check: bool = True  # compare the bits of the results with one device's
    realtime: bool = False
    brief: bool = False  # without devices, classes and trace, which take steps of their own

    def with_request(self, r: dict[str, Any]) -> Options:
        return dataclasses.replace(self, **{k: r[k] for k in ("steps", "repeats", "clock", "trace", "check", "brief") if k in r})


class Meter:
    """Measures schedules of one program on CPU workers. The program is observed
    once; the results of one device, which others have to equal, come from a run
    of the same runner on one worker."""

    def __init__(self, p: Program, state: Tensors | None = None, batch: Tensors | None = None):
        self.program = p
        self.state = state if state is not None else states.example(p)
        self.batch = batch if batch is not None else states.batch(p)
        torch.set_num_threads(1)
        self.specs, _ = observe(p, self.state, self.batch)
        self.kept = list(p.gradients.values())
        self._reference: list[torch.Tensor] | None = None

    def reference(self) -> list[torch.Tensor]:
        """Outputs, gradients and state of one device behind its first step."""
        if self._reference is None:
            self._reference = self._first_step(schedule.single(schedule.ops(self.program)))
        return self._reference

    def _first_step(self, s: Schedule) -> list[torch.Tensor]:
        with Workers(self.program, s, self.state, self.batch, keep=self.kept, specs=self.specs) as w:
            w.run(1)
            return [*w.results, *w.state.values()]

    def measure(self, s: Schedule, o: Options = Options()) -> dict[str, Any]:
        """The measurement of s as a document. Raises RunError where it fails."""
        if o.clock not in (clock.WALL, clock.VIRTUAL):
            raise FormatError(f"clock {o.clock!r}: want wall or virtual")
        p = self.program
        load = clock.Load()
        best: Steps | None = None
        rounds = []
        for _ in range(o.repeats):
            with Workers(p, s, self.state, self.batch, specs=self.specs, realtime=o.realtime) as w:
                w.run(1)
                got = w.run(o.steps)
            rounds.append(min(self._by(got, o.clock)))
            if best is None or rounds[-1] <= min(rounds):
                best = got
        assert best is not None
        others = load.others()
        series = self._by(best, o.clock)
        doc: dict[str, Any] = {
            "format": FORMAT,
            "method": s.method,
            "step_time_s": min(series),
            "predicted_s": s.predicted_s,
            "clock": o.clock,
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
            records = self._traced(s, o)
            doc["devices"] = self._devices(s, best, series.index(min(series)), records)
            doc["classes"] = self._classes(s, records)
            if o.trace:
                doc["trace"] = self._trace(s, records)
        if o.check:
            doc["equal"] = states.equal(self.reference(), self._first_step(s))
        return doc

    def _traced(self, s: Schedule, o: Options) -> Records:
        """The middle one of three steps with a clock reading around each op."""
        with Workers(self.program, s, self.state, self.batch, specs=self.specs, trace=o.clock, realtime=o.realtime) as w:
            w.run(1)
            traced = [w.run(1) for _ in range(3)]
        return sorted(traced, key=lambda t: self._by(t, o.clock)[0])[len(traced) // 2].records

    @staticmethod
    def _by(steps: Steps, name: str) -> list[float]:
        return steps.wall_s if name == clock.WALL else steps.virtual_s

    def _bytes(self, r: Ref) -> int:
        spec = self.specs.get(r) or self.program.spec(r)
        return compact(torch.empty_strided(spec.shape, spec.stride, dtype=spec.dtype, device="meta")).numel() * spec.dtype.itemsize

    def _devices(self, s: Schedule, steps: Steps, at: int, records: Records) -> list[dict[str, Any]]:
        p = self.program
        crossing = {(r, s.device[i]) for i, o in enumerate(p.ops) for r in o.inputs() if s.device[r.op] != s.device[i]}
        sent = {r for r, _ in crossing}
        found = []
        for d, name in enumerate(s.devices):
            busy = sum(end - start for i, out, start, end in records[d] if out < 0)
            copies = sum(end - start for i, out, start, end in records[d] if out >= 0)
            total = steps.worker_virtual_s[at][d]
            found.append(
                {
                    "name": name,
                    "ops": sum(1 for i, x in enumerate(s.device) if x == d and p.ops[i].role not in SOURCES),
                    "busy_s": _r(busy),
                    "copy_s": _r(copies),
                    "work_s": _r(steps.compute_s[at][d]),
                    "wait_s": _r(max(0.0, total - steps.compute_s[at][d])),
                    "sent_bytes": sum(self._bytes(r) for r in sent if s.device[r.op] == d),
                    "received_bytes": sum(self._bytes(r) for r, to in crossing if to == d),
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
                    e.update(output=out, to=[s.devices[x] for x in sorted(readers[r])], bytes=self._bytes(r), send=True)
                events.append(e)
        return events


Records = list[list[tuple[int, int, float, float]]]


def answer(meter: Meter, request: dict[str, Any], o: Options) -> dict[str, Any]:
    """The measurement that a request asks for, or {"id", "error"}."""
    return protocol.answer(request, lambda r: meter.measure(schedule.requested(schedule.ops(meter.program), r), o.with_request(r)))


def serve(meter: Meter, o: Options, requests: IO[str], answers: IO[str]) -> None:
    """Answers requests, one JSON document a line, until they end."""
    devices = [f"cpu:{k}" for k in range(len(protocol.cores()))]
    protocol.serve("torch", torch.__version__, len(meter.program.ops), devices, True, lambda r: meter.measure(schedule.requested(schedule.ops(meter.program), r), o.with_request(r)), requests, answers)


def _round(xs: Sequence[float]) -> list[float]:
    return [_r(x) for x in xs]
