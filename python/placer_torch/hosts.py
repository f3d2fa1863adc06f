"""The devices of this host that a plan can use: CPU cores, or GPUs."""

from __future__ import annotations

import os
import re
from typing import Protocol

import torch

from placer_runtime.binary import MOST_DEVICES

from . import copies, machine, profile, profile_cuda
from .clock import VIRTUAL, WALL
from .copies import Copies
from .errors import FormatError, NoDeviceError
from .measure import Meter
from .profile import STEPS, Profile
from .streams import more_queues


class Host(Protocol):
    """Devices of one kind. `first` is the name of one of them in plans; `cpu` is
    whether placer counts CPUs among the devices to place ops on."""

    first: str
    cpu: bool

    def clock(self, wanted: str) -> str:
        """The clock that decides. Raises FormatError where these devices lack it."""

    def profile(self, meter: Meter, folder: str, graph_hash: str, *, steps: int = STEPS, realtime: bool = False) -> Profile | None:
        """Measures devices and ops and writes machine.json and times.json. None, and no
        times.json, where the step does not fit on one device: its times are the
        roofline's."""


def find(devices: str) -> Host:
    """The host's part that `devices` names: auto, cpu:N, cuda or cuda:N."""
    cores, gpus = len(os.sched_getaffinity(0)), torch.cuda.device_count() if torch.cuda.is_available() else 0
    if devices == "auto":
        return Gpus(min(gpus, MOST_DEVICES)) if gpus > 1 else Cores(min(cores, MOST_DEVICES))
    asked = re.fullmatch(r"cpu:([1-9]\d*)|cuda(?::([1-9]\d*))?", devices)
    if asked is None:
        raise NoDeviceError(f"devices {devices!r}: want auto, cpu:N, cuda or cuda:N")
    if int(asked[1] or asked[2] or 0) > MOST_DEVICES:
        raise NoDeviceError(f"devices {devices}: placer's machines have at most {MOST_DEVICES}")
    if asked[1]:
        if int(asked[1]) > cores:
            raise NoDeviceError(f"devices {devices}: this process may use {cores} cores")
        return Cores(int(asked[1]))
    n = int(asked[2] or max(1, min(gpus, MOST_DEVICES)))
    if n > gpus:
        raise NoDeviceError(f"devices {devices}: this host has {gpus} CUDA devices")
    return Gpus(n)


class Cores:
    """count CPU cores, each with a process of its own."""

    first, cpu = "cpu:0", True

    def __init__(self, count: int):
        self.count = count

    def clock(self, wanted: str) -> str:
        return wanted or WALL

    def profile(self, meter: Meter, folder: str, graph_hash: str, *, steps: int = STEPS, realtime: bool = False) -> Profile:
        got = profile.on_core(meter.program, meter.state, meter.batch, meter.specs, steps=steps, realtime=realtime)
        crossing = copies.measure(realtime=realtime) if self.count > 1 else Copies(1e-6, 1e10, 1e-6, 1e-6, 1e11, 1e10, 1e10, 3e-6)
        self.write(got, crossing, folder, graph_hash)
        return got

    def write(self, got: Profile, crossing: Copies, folder: str, graph_hash: str) -> None:
        """Writes times.json and machine.json."""
        doc = machine.cores(crossing, self.count, machine.core_flops())
        memory = doc["models"]["core"]["capacity"]
        times = profile.times_doc(graph_hash, got, model="core", count=self.count, memory=memory, cpu=True, bandwidth=crossing.send_bandwidth, latency=crossing.send_s)
        profile.write_times(os.path.join(folder, "times.json"), times)
        machine.write(os.path.join(folder, "machine.json"), doc)


class Gpus:
    """The first count GPUs, all driven by one process."""

    first, cpu = "gpu:0", False

    def __init__(self, count: int):
        more_queues()
        self.devices = [torch.device("cuda", k) for k in range(count)]

    def clock(self, wanted: str) -> str:
        if wanted == VIRTUAL:
            raise FormatError("clock virtual: GPUs have the wall clock alone")
        return WALL

    def profile(self, meter: Meter, folder: str, graph_hash: str, *, steps: int = STEPS, realtime: bool = False) -> Profile | None:
        if realtime:
            raise FormatError("realtime: goes with CPU devices alone")
        doc = machine.cuda(self.devices)
        machine.write(os.path.join(folder, "machine.json"), doc)
        models = [x["model"] for x in doc["devices"]]
        found: dict[str, Profile] = {}
        try:
            for d, model in zip(self.devices, models):
                if model not in found:
                    found[model] = profile_cuda.on_cuda(meter.program, meter.state, meter.batch, d, steps=steps)
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            return None
        docs = [
            profile.times_doc(graph_hash, got, model=model, count=models.count(model), memory=doc["models"][model]["capacity"], cpu=False, bandwidth=25e9, latency=1e-5)
            for model, got in found.items()
        ]
        docs[0]["models"] = [m for x in docs for m in x["models"]]
        profile.write_times(os.path.join(folder, "times.json"), docs[0])
        return found[models[0]]
