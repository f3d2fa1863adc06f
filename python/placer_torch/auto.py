"""One call for a user: capture, profile, search, run, and what came of it."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from typing import Any, Callable

import torch

from placer_runtime import binary

from . import eager, hosts, samples as numbers, schedule as schedules, state as states
from .capture import Loss, capture
from .clipping import Clip
from .eager import Eager
from .errors import FormatError, NoMemoryError
from .measure import Meter, Options
from .optim import Optimizers
from .schedule import Schedule
from .program import Program, check_kernels


@dataclasses.dataclass
class Planned:
    """What plan() found. `schedule` is the best, one device's where that is; seconds are
    measured by `clock`, `predicted_s` is the simulator's."""

    program: Program
    schedule: Schedule
    one_device_s: float | None  # None: the step does not fit on one
    best_s: float
    predicted_s: float
    equal: bool | None  # the results of the plan over several devices, where there is one, have the bits of one device's; None: not compared
    not_compared: str  # why not
    clock: str
    folder: str
    several_s: float | None  # the best plan over several devices, measured; None: the search found none
    load: float | None  # cores' worth of time that other processes used meanwhile
    issue_s: float  # what the host takes to issue the step's ops to GPUs, by one device's step; 0 of cores
    eager: Eager | None  # the step as torch itself runs it, by the wall clock; None: it could not be run

    @property
    def agreement(self) -> str:
        """Whether results are equal to the last bit, in words."""
        if self.equal is None:
            return f"not compared: {self.not_compared}"
        return "equal" if self.equal else "NOT equal"

    @property
    def falls_back(self) -> bool:
        return len(set(self.schedule.device)) < 2

    def __str__(self) -> str:
        one = "the step does not fit on one device" if self.one_device_s is None else f"one device: {self.one_device_s * 1e3:.2f} ms a step measured ({self.clock} clock)"
        if self.falls_back:
            if self.several_s is None:
                return f"{one}; the search found no plan over several devices that is faster, so the model stays on one, with no other results to compare{self._beside}; files in {self.folder}"
            return (
                f"{one}; the best plan over several takes {self.several_s * 1e3:.2f} ms measured{self._busy}, {self.predicted_s * 1e3:.2f} ms predicted{self._issued}, "
                f"results {self.agreement}, so the model stays on one device{self._beside}; files in {self.folder}"
            )
        gain = "" if self.one_device_s is None else f" {self.one_device_s / self.best_s:.2f} times as fast,"
        return (
            f"{one}; best plan ({self.schedule.method}) on {len(set(self.schedule.device))} devices: {self.best_s * 1e3:.2f} ms measured{self._busy}, "
            f"{self.predicted_s * 1e3:.2f} ms predicted{self._issued};{gain} results {self.agreement}{self._beside}; files in {self.folder}"
        )

    @property
    def _busy(self) -> str:
        return f" while other processes used {self.load:.1f} cores" if self.load is not None and self.load >= 0.1 else ""

    @property
    def _beside(self) -> str:
        """What torch itself takes, and whether that is less."""
        if self.eager is None:
            return ""
        return f"; {self.eager}" + (", which is faster" if self.eager.seconds < self.best_s else "")

    @property
    def _issued(self) -> str:
        """That a plan cannot be faster than the host issues it, where that is more than predicted."""
        return f" without the host, which takes {self.issue_s * 1e3:.2f} ms to issue the ops" if self.issue_s > self.predicted_s else ""


def plan(
    model: torch.nn.Module,
    loss: Loss | None,
    batch: Any,
    optimizer: Optimizers | None = None,
    devices: str = "auto",
    *,
    budget: str = "20s",
    evaluations: int | None = None,
    clock: str = "",
    folder: str | None = None,
    name: str | None = None,
    samples: int | None = None,
    resized: Callable[[int], tuple[Any, Any, Any, Any]] | None = None,
    clip_norm: float | None = None,
    clip_value: float | None = None,
    norm_type: float = 2.0,
    accumulate: bool = False,
) -> Planned:
    """Captures the step, profiles it and the devices, has placer search, runs the
    best plan beside one device and torch's own step, and returns all. devices: "cuda" (all GPUs), "cuda:N",
    "cpu:N", or "auto": the GPUs where there are several, else the CPU cores that this
    process may use. clock: "wall", or of CPU cores "virtual". Print the result to read
    it. The graph file is one of any number of samples where the step is: samples says how
    many batch has, its leading dimension without it, and resized(n) returns model, loss,
    batch and optimizer of n; without it the batch's leading dimensions are changed.
    clip_norm, clip_value, norm_type, accumulate: as of capture. Raises NoMemoryError where no plan fits.
    """
    if folder and os.path.isdir(os.path.join(folder, "run")):
        raise FormatError(f"{folder}: holds a plan already; name another folder")
    host = hosts.find(devices)
    options = Options(clock=host.clock(clock))
    kind = "cpu" if host.cpu else "cuda"
    p = capture(model, loss, batch, optimizer, name=name, device=kind, clip_norm=clip_norm, clip_value=clip_value, norm_type=norm_type, accumulate=accumulate)
    check_kernels(p, kind)
    folder = folder or tempfile.mkdtemp(prefix="placer-")
    path = lambda f: os.path.join(folder, f)  # noqa: E731
    n = numbers.count(batch) if samples is None else samples

    def step(m: int) -> Program:
        made = resized(m) if resized is not None else (model, loss, numbers.resized(batch, n, m), optimizer)
        return capture(*made, name=p.name, device=kind, clip_norm=clip_norm, clip_value=clip_value, norm_type=norm_type, accumulate=accumulate)

    numbers.write(p, n, step, path("graph.json"))
    p.save(path("program.pt"))
    meter = Meter(p, states.of_model(p, model), states.leaves(p, batch))
    profile = host.profile(meter, folder, binary.graph_hash(path("graph.json")))
    if profile is None and lies_on_gpu(model):
        raise NoMemoryError(BESIDE)
    inputs = binary.Inputs(path("graph.json"), path("machine.json"), path("times.json") if profile else None, host.cpu)
    binary.search(inputs, path("plan.json"), budget=budget, evaluations=evaluations)
    binary.schedule(inputs, path("plan.json"), path("schedule.json"))
    best = schedules.read(schedules.ops(p), path("schedule.json"))
    one = Tried(schedules.single(schedules.ops(p), device=host.first), None)
    try:
        one.measured = meter.measure(one.schedule, options)
    except NoMemoryError:
        if lies_on_gpu(model):
            raise NoMemoryError(BESIDE) from None
    found = Tried(best, meter.measure(best, options))
    own = eager.measure(model, loss, batch, optimizer, kind, clip=Clip(clip_norm, clip_value, norm_type), accumulate=accumulate)
    return faster(one, found, p, folder, issue_s=profile.issue_s if profile else 0.0, own=own)


BESIDE = "the step does not fit on one GPU beside the model itself, which lies on one: move the model to the CPU first, model.cpu(), and plan again"


def lies_on_gpu(model: torch.nn.Module) -> bool:
    return any(p.is_cuda for p in model.parameters())


@dataclasses.dataclass
class Tried:
    """A schedule and its measurement (protocol.FORMAT); None: it does not fit."""

    schedule: Schedule
    measured: dict[str, Any] | None


def faster(one: Tried, best: Tried, p: Program, folder: str, *, issue_s: float, own: Eager | None = None) -> Planned:
    """The search's plan where it uses several devices and its step is shorter than one device's, else one device's."""
    assert best.measured is not None
    several = len(set(best.schedule.device)) > 1
    one_s = one.measured["step_time_s"] if one.measured else None
    best_s = best.measured["step_time_s"]
    taken = best if one_s is None or several and best_s < one_s else one
    compared = best.measured if several or one.measured is None else one.measured
    return Planned(
        program=p,
        schedule=taken.schedule,
        one_device_s=one_s,
        best_s=best_s if one_s is None or taken is best else one_s,
        predicted_s=best.schedule.predicted_s if best.schedule.predicted_s is not None else float("nan"),
        equal=compared.get("equal"),
        not_compared=compared.get("not_compared", ""),
        clock=best.measured["clock"],
        folder=folder,
        several_s=best_s if several else None,
        load=best.measured["load"],
        issue_s=issue_s,
        eager=own,
    )
