"""Every process begins with the same model on its own device."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn

from .mesh import Mesh


def move(model: nn.Module, device: torch.device) -> None:
    """Moves model to device. Parameters stay the objects that an optimizer holds."""
    for p in model.parameters():
        p.data = p.data.to(device)
    model.to(device)


def send(model: nn.Module) -> None:
    """Parameters and buffers of rank 0 to all others."""
    if dist.get_world_size() == 1:
        return
    seen: set[int] = set()
    with torch.no_grad():
        for t in (*model.parameters(), *model.buffers()):
            if id(t) not in seen:
                seen.add(id(t))
                whole = t.detach().contiguous()
                dist.broadcast(whole, 0)
                t.copy_(whole)


def agree(mesh: Mesh) -> None:
    """The parts of a replica draw the same random numbers, as of dropout: those of part 0."""
    if mesh.tensor.size() == 1:
        return
    group = mesh.tensor.get_group()
    first = dist.get_global_rank(group, 0)
    state = torch.get_rng_state().to(mesh.device)
    dist.broadcast(state, first, group=group)
    torch.set_rng_state(state.cpu())
    if mesh.device.type == "cuda":
        state = torch.cuda.get_rng_state(mesh.device).to(mesh.device)
        dist.broadcast(state, first, group=group)
        torch.cuda.set_rng_state(state.cpu(), mesh.device)
