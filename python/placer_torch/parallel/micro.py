"""A replica's samples in micro-batches."""

from __future__ import annotations

from typing import Any, Callable

import torch

from .. import batches, samples
from ..errors import RunError


def part(batch: Any, k: int, n: int, among: int = 0) -> Any:
    """The k-th of n equal parts of a batch: of the tensors whose leading dimension is the first
    tensor's, or the number of samples `among`, their rows; everything else whole."""
    if n == 1:
        return batch
    first = samples.count(batch)
    if not first or first % n or among % n:
        raise RunError(f"the batch has {among or first} samples, which cannot be divided by {n}")

    def leaf(x: Any) -> Any:
        if not isinstance(x, torch.Tensor) or not x.dim() or x.shape[0] not in (first, among):
            return x
        rows = x.shape[0] // n
        return x[k * rows : (k + 1) * rows]

    return each(batch, leaf)


def repeated(batch: Any, among: int, n: int) -> Any:
    """A batch of `among` samples made one of n, its samples in turn as often as it takes."""
    first = samples.count(batch)
    if among == n:
        return batch
    if not first or not among or first % among:
        raise RunError(f"the leading dimension of the batch's first tensor is {first}: it is not a multiple of {among} samples")

    def leaf(x: Any) -> Any:
        if not isinstance(x, torch.Tensor) or not x.dim() or x.shape[0] not in (first, among):
            return x
        rows = x.shape[0] // among
        return torch.cat([x[s % among * rows : (s % among + 1) * rows] for s in range(n)])

    return each(batch, leaf)


def to(batch: Any, device: torch.device) -> Any:
    return each(batch, lambda x: x.to(device) if isinstance(x, torch.Tensor) else x)


def each(batch: Any, leaf: Callable[[Any], Any]) -> Any:
    """batch with what leaf makes of each of its leaves."""
    return batches.rebuild(batch, iter([leaf(x) for _, x in batches.leaves(batch)]))
