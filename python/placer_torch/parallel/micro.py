"""A replica's samples in micro-batches."""

from __future__ import annotations

from typing import Any

import torch

from .. import batches, samples
from ..errors import RunError




def part(batch: Any, k: int, n: int) -> Any:
    """The k-th of n equal parts of a batch: of the tensors whose leading dimension is the
    first tensor's their rows, everything else whole."""
    first = samples.count(batch)
    if n == 1:
        return batch
    if not first or first % n:
        raise RunError(f"the batch has {first} samples, which cannot be divided by {n}")
    rows = first // n

    def leaf(x: Any) -> Any:
        return x[k * rows : (k + 1) * rows] if isinstance(x, torch.Tensor) and x.dim() and x.shape[0] == first else x

    return batches.rebuild(batch, iter([leaf(x) for _, x in batches.leaves(batch)]))


def to(batch: Any, device: torch.device) -> Any:
    return batches.rebuild(batch, iter([x.to(device) if isinstance(x, torch.Tensor) else x for _, x in batches.leaves(batch)]))
