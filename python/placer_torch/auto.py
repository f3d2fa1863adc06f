"""One call for a user: capture, profile, search, run, and what came of it."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from typing import Any

import torch

from placer_runtime import binary

from . import copies, graph, machine, schedule as schedules, profile, state as states
from .capture import Loss, capture
from .errors import FormatError, NoDeviceError
from .measure import Meter, Options
from .schedule import Schedule
from .program import Program


@dataclasses.dataclass
class Planned:
    """What plan() found. `schedule` is the best, one device's where that is;
    seconds are measured by `clock`, `predicted_s` is the simulator's."""

    program: Program
    schedule: Schedule
    one_device_s: float
    best_s: float
    predicted_s: float
    equal: bool  # the results of the plan over several devices, where there is one, have the bits of one device's
    clock: str
    folder: str
    several_s: float | None  # the best plan over several devices, measured; None: the search found none
    load: float | None  # cores' worth of time that other processes used meanwhile

    @property
    def agreement(self) -> str:
        """Whether results are equal to the last bit, in words."""
        return "equal" if self.equal else "NOT equal"

    @property
    def falls_back(self) -> bool:
        return len(set(self.schedule.device)) < 2

    def __str__(self) -> str:
        one = f"one device: {self.one_device_s * 1e3:.2f} ms a step measured ({self.clock} clock)"
        if self.falls_back:
            if self.several_s is None:
                return f"{one}; the search found no plan over several devices that is faster, so the model stays on one, with no other results to compare; files in {self.folder}"
            busy = f" while other processes used {self.load:.1f} cores" if self.load is not None and self.load >= 0.1 else ""
            return (
                f"{one}; the best plan over several takes {self.several_s * 1e3:.2f} ms measured{busy}, {self.predicted_s * 1e3:.2f} ms predicted, "
                f"results {self.agreement}, so the model stays on one device; files in {self.folder}"
            )
        gain = self.one_device_s / self.best_s
        return (
            f"{one}; best plan ({self.schedule.method}) on {len(set(self.schedule.device))} devices: {self.best_s * 1e3:.2f} ms measured, "
            f"{self.predicted_s * 1e3:.2f} ms predicted; {gain:.2f} times as fast, results {self.agreement}; files in {self.folder}"
        )


def plan(
    model: torch.nn.Module,
    loss: Loss | None,
    batch: Any,
    optimizer: torch.optim.Optimizer | None = None,
    devices: str = "auto",
    *,
    budget: str = "20s",
    evaluations: int | None = None,
    clock: str = "wall",
    folder: str | None = None,
    name: str | None = None,
) -> Planned:
    """Captures the step, profiles it and the devices, has placer search, runs the
    best plan beside one device and returns both. devices: "auto" (the CPU cores
    that this process may use) or "cpu:N". Print the result to read it.
    """
    if folder and os.path.isdir(os.path.join(folder, "run")):
        raise FormatError(f"{folder}: holds a plan already; name another folder")
    count = device_count(devices)
    p = capture(model, loss, batch, optimizer, name=name)
    folder = folder or tempfile.mkdtemp(prefix="placer-")
    path = lambda f: os.path.join(folder, f)  # noqa: E731
    graph.write(p, path("graph.json"))
    p.save(path("program.pt"))
    meter = Meter(p, states.of_model(p, model), states.leaves(p, batch))
    write_profile(p, meter, folder, count, binary.graph_hash(path("graph.json")))
    binary.search(path("graph.json"), path("machine.json"), path("times.json"), path("plan.json"), budget=budget, evaluations=evaluations, cpu=True)
    binary.schedule(path("graph.json"), path("machine.json"), path("times.json"), path("plan.json"), path("schedule.json"), cpu=True)
    best = schedules.read(schedules.ops(p), path("schedule.json"))
    options = Options(clock=clock)
    one_schedule = schedules.single(schedules.ops(p))
    one = meter.measure(one_schedule, options)
    many = meter.measure(best, options)
    return faster(Tried(one_schedule, one), Tried(best, many), p, clock, folder)


@dataclasses.dataclass
class Tried:
    """A schedule and its measurement (protocol.FORMAT)."""

    schedule: Schedule
    measured: dict[str, Any]


def faster(one: Tried, best: Tried, p: Program, clock: str, folder: str) -> Planned:
    """The search's plan where it uses several devices and its step is shorter than one device's, else one device's."""
    several = len(set(best.schedule.device)) > 1
    one_s, best_s = one.measured["step_time_s"], best.measured["step_time_s"]
    taken = best if several and best_s < one_s else one
    return Planned(
        program=p,
        schedule=taken.schedule,
        one_device_s=one_s,
        best_s=taken.measured["step_time_s"],
        predicted_s=best.schedule.predicted_s if best.schedule.predicted_s is not None else float("nan"),
        equal=best.measured["equal"] if several else one.measured["equal"],
        clock=clock,
        folder=folder,
        several_s=best_s if several else None,
        load=best.measured["load"],
    )


def device_count(devices: str) -> int:
    """How many CPU devices a value of devices means here."""
    cores = len(os.sched_getaffinity(0))
    if devices == "auto":
        return cores
    kind, _, n = devices.partition(":")
    if kind != "cpu" or not n.isdigit() or int(n) < 1:
        raise NoDeviceError(f"devices {devices!r}: want auto or cpu:N")
    if int(n) > cores:
        raise NoDeviceError(f"devices {devices}: this process may use {cores} cores")
    return int(n)


def write_profile(p: Program, meter: Meter, folder: str, count: int, graph_hash: str, *, steps: int = profile.STEPS, realtime: bool = False) -> profile.Profile:
    """Measures ops and copies and writes times.json and machine.json."""
    got = profile.on_core(p, meter.state, meter.batch, meter.specs, steps=steps, realtime=realtime)
    c = copies.measure(realtime=realtime) if count > 1 else copies.Copies(1e-6, 1e10, 1e-6, 1e-6, 1e11, 1e10, 1e10, 3e-6)
    write_files(got, c, folder, count, graph_hash)
    return got


def write_files(got: profile.Profile, c: copies.Copies, folder: str, count: int, graph_hash: str) -> None:
    """Writes times.json and machine.json of count cores."""
    doc = machine.cores(c, count, machine.core_flops())
    memory = doc["models"]["core"]["capacity"]
    times = profile.times_doc(graph_hash, got, model="core", count=count, memory=memory, cpu=True, bandwidth=c.send_bandwidth, latency=c.send_s)
    profile.write_times(os.path.join(folder, "times.json"), times)
    machine.write(os.path.join(folder, "machine.json"), doc)
