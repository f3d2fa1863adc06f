"""Every process begins with the same model on its own device."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn


def move(model: nn.Module, optimizer: torch.optim.Optimizer, device: torch.device) -> None:
    """Moves model to device. Parameters stay the objects that the optimizer holds."""
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
