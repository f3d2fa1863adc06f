"""Every process begins with the same model on its own device."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh

from .. import batches
from .errors import StrategyError
from .mesh import Mesh


def move(model: nn.Module, device: torch.device) -> None:
    """Moves model to device. Parameters stay the objects that an optimizer holds."""
    for p in model.parameters():
        p.data = p.data.to(device)
    model.to(device)


def send(model: nn.Module, device: torch.device) -> None:
    """Parameters and buffers of rank 0 to all others, through this process's device."""
    if dist.get_world_size() == 1:
        return
    seen: set[int] = set()
    with torch.no_grad():
        for t in (*model.parameters(), *model.buffers()):
            if id(t) not in seen:
                seen.add(id(t))
                whole = t.detach().to(device).contiguous()
                dist.broadcast(whole, 0)
                t.copy_(whole)


def same_batch(batch: Any, mesh: Mesh) -> None:
    """Raises StrategyError on all parts and stages of a replica, and all replicas that share its
    tokens out, whose batches differ: the results of different ones would be added up without a word."""
    of_batch = _of_batch(mesh)
    among = math.prod(of.size() for of in of_batch)
    if among == 1:
        return
    values = [x.detach().to(mesh.device, torch.float64) for _, x in batches.leaves(batch) if isinstance(x, torch.Tensor) and not x.is_complex()]
    sums = torch.stack([torch.zeros((), dtype=torch.float64, device=mesh.device), *(f(x) for x in values for f in (torch.sum, torch.linalg.vector_norm))])
    ends = torch.cat([sums, -sums])
    for of in of_batch:
        dist.all_reduce(ends, dist.ReduceOp.MAX, group=of.get_group())
    most, least = ends.chunk(2)
    if not torch.equal(most, -least) and not torch.isnan(ends).any():
        raise StrategyError(f"the {among} processes of {'replica' if mesh.tokens is None else 'group'} {mesh.group} were given different batches: all parts and stages of a replica, and replicas that share tokens out, take the same samples (seed the data alike, and choose them by Training.replica)")


def _of_batch(mesh: Mesh) -> list[DeviceMesh]:
    """Whose processes take the same batch as this one."""
    return [mesh.stages, mesh.tensor, *([] if mesh.tokens is None else [mesh.tokens])]


def agree(mesh: Mesh) -> None:
    """The parts of a replica, or replicas that share tokens out, draw the same random numbers, as of
    dropout: those of the first."""
    for of in (mesh.tensor, mesh.tokens):
        if of is not None and of.size() > 1:
            _agree(of, mesh.device)


def _agree(mesh: DeviceMesh, device: torch.device) -> None:
    group = mesh.get_group()
    first = dist.get_global_rank(group, 0)
    state = torch.get_rng_state().to(device)
    dist.broadcast(state, first, group=group)
    torch.set_rng_state(state.cpu())
    if device.type == "cuda":
        state = torch.cuda.get_rng_state(device).to(device)
        dist.broadcast(state, first, group=group)
        torch.cuda.set_rng_state(state.cpu(), device)
