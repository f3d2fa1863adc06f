"""What an optimizer keeps of a parameter: whole, and of the part of it that a process has."""

from __future__ import annotations

from typing import Any

import torch
from torch.distributed.tensor import DTensor, distribute_tensor

from .parts import Order

Slots = dict[str, Any]


def whole(optimizer: torch.optim.Optimizer, p: torch.Tensor, name: str, order: Order) -> Slots:
    """Copies on the host. All processes that share p out have to call it."""
    return {k: order.restored(name, copied(v)) if isinstance(v, torch.Tensor) else v for k, v in optimizer.state.get(p, {}).items()}


def gathered(optimizer: torch.optim.Optimizer, p: torch.Tensor) -> None:
    """What a process does while another calls whole."""
    for v in optimizer.state.get(p, {}).values():
        if isinstance(v, DTensor):
            v.full_tensor()


def take(optimizer: torch.optim.Optimizer, p: torch.Tensor, name: str, slots: Slots, order: Order) -> None:
    """Has the optimizer go on with slots, which are whole: those that it had of p are gone."""
    optimizer.state.pop(p, None)
    if slots:
        on_device = any(g.get("capturable") or g.get("fused") for g in optimizer.param_groups if any(x is p for x in g["params"]))
        optimizer.state[p] = {k: _own(order.arranged(name, v), p, on_device or k != "step") if isinstance(v, torch.Tensor) else v for k, v in slots.items()}


def copied(t: torch.Tensor) -> torch.Tensor:
    """The whole of t on the host, and not the tensor that training goes on with."""
    t = t.detach()
    return (t.full_tensor() if isinstance(t, DTensor) else t).contiguous().to("cpu", copy=True)


def laid_out(value: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    """value, which is whole, as t is: a copy."""
    value = value.to(t.device, copy=True)
    return distribute_tensor(value, t.device_mesh, t.placements, src_data_rank=None) if isinstance(t, DTensor) else value


def _own(value: torch.Tensor, p: torch.Tensor, on_device: bool) -> torch.Tensor:
    """What torch counts steps in stays on the host, but of optimizers that count on the device."""
    if on_device and value.shape == p.shape:
        return laid_out(value, p)
    return value.to(p.device if on_device else "cpu", copy=True)
