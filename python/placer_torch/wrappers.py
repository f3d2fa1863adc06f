"""What wraps a user's model or optimizer."""

from __future__ import annotations

from typing import Any

import torch


def unwrap(model: torch.nn.Module) -> torch.nn.Module:
    """The model within torch.compile's and data parallelism's wrappers, whose parameters
    are the wrapper's own: what is captured is the step itself."""
    while True:
        inner = getattr(model, "_orig_mod", None)
        if inner is None and isinstance(model, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)):
            inner = model.module
        if not isinstance(inner, torch.nn.Module):
            return model
        model = inner


_LIBRARIES = ("accelerate", "lightning", "lightning_fabric", "pytorch_lightning")


def unwrap_optimizer(optimizer: Any) -> Any:
    """The optimizer within a wrapper of accelerate or Lightning, which decide when it steps. Those of
    others, as of Lookahead, change what a step is."""
    while type(optimizer).__module__.partition(".")[0] in _LIBRARIES and isinstance(getattr(optimizer, "optimizer", None), torch.optim.Optimizer):
        optimizer = optimizer.optimizer
    return optimizer
