"""Modules that wrap a user's model."""

from __future__ import annotations

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
