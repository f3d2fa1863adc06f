"""Measured steps of schedules, as `placer step measurement 1` (docs/pytorch.md)."""

from __future__ import annotations

import dataclasses
from typing import IO, Any

import numpy as np

from placer_runtime import clock
from placer_runtime import serve as protocol
from placer_runtime.errors import FormatError
from placer_runtime.serve import six

from . import schedule
from .run import Runner, Span, equal
from .runtime import tf
from .schedule import Schedule
from .step import Step, source

_SOURCES = {"Const", "VarHandleOp", "Placeholder"}


@dataclasses.dataclass(frozen=True)
class Options:
    """steps of a round, behind one that is dropped; rounds. The wall clock decides."""

    steps: int = 5
    repeats: int = 2
    clock: str = "wall"
    trace: bool = False
    check: bool = True  # compare the bits of the results with one device's
    realtime: bool = False
    brief: bool = False  # without devices, classes and trace, which take steps of their own

    def with_request(self, r: dict[str, Any]) -> Options:
        return dataclasses.replace(self, **{k: r[k] for k in ("steps", "repeats", "clock", "trace", "check", "brief") if k in r})


class Meter:
    """Measures schedules of one step, whose results on one device the others have to equal."""

    def __init__(self, s: Step):
        self.step = s
        self._reference: list[np.ndarray] | None = None

    def reference(self) -> list[np.ndarray]:
        """Loss and variables of one device behind its first step."""
        if self._reference is None:
            self._reference = self._first_step(schedule.single(schedule.ops(self.step)))
        return self._reference

    def _first_step(self, x: Schedule) -> list[np.ndarray]:
        """Of a session of its own: random ops, as dropout, go on from step to step."""
        with Runner(self.step, x) as r:
            return r.results()

    def measure(self, x: Schedule, o: Options = Options()) -> dict[str, Any]:
        """The measurement of x as a document. Raises RunError where it fails."""
        if o.clock != "wall":
            raise FormatError(f"clock {o.clock!r}: want wall")
        load = clock.Load()
        with Runner(self.step, x, realtime=o.realtime) as r:
            rounds = []
            for _ in range(o.repeats):
                r.run(1)
                rounds.append(r.run(o.steps))
            best = min(rounds, key=min)
            doc: dict[str, Any] = {
                "format": protocol.FORMAT,
                "method": x.method,
                "step_time_s": min(best),
                "predicted_s": x.predicted_s,
                "clock": "wall",
                "realtime": r.realtime,
                "wall_s": [six(t) for t in best],
                "virtual_s": [],
                "rounds_s": [six(min(t)) for t in rounds],
                "spread": round(clock.spread(best), 4),
            }
            others = load.others()
            doc["load"] = None if others is None else round(others, 3)
            if not o.brief:
                r.traced()
                spans = sorted((r.traced() for _ in range(3)), key=lambda s: max(t.end for t in s))[1]
                known = [t for t in spans if t.node in self.step.index]
                end = max(t.end for t in known)
                doc["devices"] = self._devices(x, known, end)
                doc["classes"] = self._classes(x, known)
                if o.trace:
                    doc["trace"] = [{"op": t.node, "device": x.devices[t.device], "start_s": six(t.start), "end_s": six(t.end)} for t in known]
        if o.check:
            doc["equal"] = equal(self.reference(), self._first_step(x))
        return doc

    def _devices(self, x: Schedule, spans: list[Span], end: float) -> list[dict[str, Any]]:
        """TensorFlow's stats have no sends: what is no op's is in wait_s."""
        crossing = set()
        for i, n in enumerate(self.step.graph.node):
            for k in n.input:
                j = self.step.index[source(k)]
                if not k.startswith("^") and x.device[j] != x.device[i]:
                    crossing.add((k, j, x.device[i]))
        found = []
        for d, name in enumerate(x.devices):
            busy = sum(t.end - t.start for t in spans if t.device == d)
            found.append(
                {
                    "name": name,
                    "ops": sum(1 for i, y in enumerate(x.device) if y == d and self.step.graph.node[i].op not in _SOURCES),
                    "busy_s": six(busy),
                    "copy_s": 0.0,
                    "work_s": six(busy),
                    "wait_s": six(max(0.0, end - busy)),
                    "sent_bytes": sum(self._bytes(k) for k in {k for k, j, _ in crossing if x.device[j] == d}),
                    "received_bytes": sum(self._bytes(k) for k, _, to in crossing if to == d),
                }
            )
        return found

    def _bytes(self, tensor: str) -> int:
        name, _, slot = tensor.partition(":")
        n = self.step.graph.node[self.step.index[name]]
        shapes = n.attr["_output_shapes"].list.shape
        if int(slot or 0) >= len(shapes) or shapes[int(slot or 0)].unknown_rank:
            return 0
        width = next((tf.as_dtype(n.attr[a].type).size for a in ("T", "dtype", "DstT", "out_type", "Tparams") if a in n.attr), 4)
        return int(np.prod([max(d.size, 0) for d in shapes[int(slot or 0)].dim], dtype=np.int64)) * (width or 4)

    def _classes(self, x: Schedule, spans: list[Span]) -> list[dict[str, Any]]:
        sums: dict[tuple[str, int], list[float]] = {}
        for t in spans:
            op = self.step.graph.node[self.step.index[t.node]].op
            if op not in _SOURCES:
                sums.setdefault((op, t.device), []).append(t.end - t.start)
        return [{"class": k, "device": x.devices[d], "ops": len(v), "seconds": six(sum(v))} for (k, d), v in sorted(sums.items())]


def serve(meter: Meter, o: Options, requests: IO[str], answers: IO[str]) -> None:
    """Answers requests, one JSON document a line, until they end."""
    protocol.serve("tensorflow", tf.__version__, len(meter.step.graph.node), devices(), [], True, lambda r: meter.measure(schedule.requested(schedule.ops(meter.step), r), o.with_request(r)), requests, answers)


def devices() -> list[str]:
    """The devices of this host: a logical one for each core, and its GPUs."""
    return [f"cpu:{k}" for k in range(len(protocol.cores()))] + [f"gpu:{k}" for k in range(len(tf.config.list_physical_devices("GPU")))]
