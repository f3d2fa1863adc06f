"""The processes of a strategy and what each of them is in it."""

from __future__ import annotations

import dataclasses
import datetime
import os

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from ..errors import NoDeviceError, RunError
from .strategy import Strategy

STAGE, DATA, TENSOR = NAMES = ("stage", "data", "tensor")
COPIES, EXPERTS = "copies", "experts"
GROUPS, TOKENS = "groups", "tokens"
PATIENCE = datetime.timedelta(minutes=10)  # with a process that does not answer; torch's own for nccl, and half an hour for gloo


@dataclasses.dataclass(frozen=True)
class Mesh:
    """All processes as stage x replica x part, in the order of their ranks."""

    all: DeviceMesh
    device: torch.device  # this process's
    of_experts: DeviceMesh | None = None  # the same with replicas as groups x those of a group, which share experts out
    of_tokens: DeviceMesh | None = None  # the same with replicas as groups x those of a group, which share tokens out

    @property
    def stage(self) -> int:
        return self._at(STAGE)

    @property
    def replica(self) -> int:
        return self._at(DATA)

    @property
    def part(self) -> int:
        return self._at(TENSOR)

    @property
    def stages(self) -> DeviceMesh:
        return self.all[STAGE]

    @property
    def data(self) -> DeviceMesh:
        """The replicas of this process's stage and part."""
        return self.all[DATA]

    @property
    def tensor(self) -> DeviceMesh:
        """The parts of this process's stage and replica."""
        return self.all[TENSOR]

    @property
    def experts(self) -> DeviceMesh:
        """The replicas that share experts out with this process's."""
        assert self.of_experts is not None
        return self.of_experts[EXPERTS]

    @property
    def copies(self) -> DeviceMesh:
        """The replicas, one of each group, that have the same experts."""
        assert self.of_experts is not None
        return self.of_experts[COPIES]

    @property
    def tokens(self) -> DeviceMesh | None:
        """The replicas that share tokens out with this process's."""
        return None if self.of_tokens is None else self.of_tokens[TOKENS]

    @property
    def group(self) -> int:
        """Whose samples this process takes."""
        return self.replica if self.of_tokens is None else self.of_tokens[GROUPS].get_local_rank()

    def _at(self, name: str) -> int:
        return self.all[name].get_local_rank()


def kind_of(device: str) -> str:
    """cpu or cuda, of --device: auto is cuda where there is one."""
    if device not in ("auto", "cpu", "cuda"):
        raise NoDeviceError(f"device {device!r}: want auto, cpu or cuda")
    there = torch.cuda.is_available()
    if device == "cuda" and not there:
        raise NoDeviceError("device cuda: torch sees no GPU")
    return "cuda" if there and device != "cpu" else "cpu"


def room(s: Strategy, device: str) -> None:
    """Raises NoDeviceError unless this host has a device for each process: processes on CPUs share
    the cores, a few on each."""
    most = max(8, 4 * len(os.sched_getaffinity(0)))
    if kind_of(device) == "cpu" and s.world > most:
        raise NoDeviceError(f"{s.strategy or 'the strategy'} is of {s.world} processes, and this host has {len(os.sched_getaffinity(0))} cores, on which {most} are run at most, each with torch and the model in its memory: check a strategy of fewer devices (placer strategies --gpus), or start this one by torchrun")
    if kind_of(device) == "cuda" and torch.cuda.device_count() < s.world:
        raise NoDeviceError(f"{s.strategy or 'the strategy'} is of {s.world} processes, and this host has {torch.cuda.device_count()} GPUs: start it by torchrun on several hosts, or take --device cpu")


def start(s: Strategy, device: str) -> torch.device:
    """Joins the other processes, as torchrun's environment says, unless that was done, and
    returns this process's device. Raises RunError where their number is not the strategy's."""
    kind = kind_of(device)
    world = dist.get_world_size() if dist.is_initialized() else int(os.environ.get("WORLD_SIZE", "1"))
    if world != s.world:
        raise RunError(f"{world} processes: {s.strategy or 'the strategy'} is of {s.world}, {s.pipeline} stages x {s.data} replicas x {s.tensor} parts (torchrun --nproc-per-node {s.world})")
    here = torch.device(kind)
    if kind == "cuda":
        local = int(os.environ.get("LOCAL_RANK", "0"))
        if local >= torch.cuda.device_count():
            raise NoDeviceError(f"process {local} of this host has no GPU: torch sees {torch.cuda.device_count()}")
        here = torch.device("cuda", local)
        torch.cuda.set_device(here)
    if not dist.is_initialized():
        backend = "nccl" if kind == "cuda" else "gloo"
        if "RANK" in os.environ:
            dist.init_process_group(backend, timeout=PATIENCE)
        else:
            dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)  # type: ignore[attr-defined]
    return here


def make(s: Strategy, device: torch.device) -> Mesh:
    whole = init_device_mesh(device.type, (s.pipeline, s.data, s.tensor), mesh_dim_names=NAMES)
    made = Mesh(whole, device)
    if s.expert_ranks > 1:
        sizes = s.pipeline, s.data // s.expert_ranks, s.expert_ranks, s.tensor
        made = dataclasses.replace(made, of_experts=init_device_mesh(device.type, sizes, mesh_dim_names=(STAGE, COPIES, EXPERTS, TENSOR)))
    if s.context > 1:
        sizes = s.pipeline, s.groups, s.context, s.tensor
        made = dataclasses.replace(made, of_tokens=init_device_mesh(device.type, sizes, mesh_dim_names=(STAGE, GROUPS, TOKENS, TENSOR)))
    return made
