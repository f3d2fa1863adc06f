"""Layers whose activations are computed again before their gradients."""

from __future__ import annotations

from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

from .strategy import Strategy


def wrap(module: nn.Module, s: Strategy) -> None:
    """Wraps each module of s.layers into torch's checkpoint_wrapper."""
    there = dict(module.named_modules())
    for path in (p for layer in s.layers for p in layer if p in there):
        parent, _, name = path.rpartition(".")
        setattr(there[parent], name, checkpoint_wrapper(there[path]))
