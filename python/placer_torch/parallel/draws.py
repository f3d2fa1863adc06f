"""Random numbers of samples that are taken twice: those of the first time, twice."""

from __future__ import annotations

import itertools
from typing import Any, Mapping, Sequence

import torch
import torch.utils._pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from .. import kinds


class Draws(TorchDispatchMode):
    """While it is entered for the first time, what each random op draws is kept; for the second, whose
    batch is that of the first time twice, one behind the other, the op draws the same: a tensor with
    one dimension twice as large has what was kept twice along it. Another has its own numbers."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: list[list[torch.Tensor]] = []
        self._entered = 0
        self.coarse = False  # whether an op made numbers of 16 bits

    @property
    def any(self) -> bool:
        """Whether a random op ran the first time."""
        return bool(self._kept)

    def __enter__(self) -> Any:
        self._entered += 1
        self._next = itertools.count()
        return super().__enter__()

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        made = func(*args, **(kwargs or {}))
        self.coarse |= any(isinstance(x, torch.Tensor) and x.is_floating_point() and x.element_size() < 4 for x in pytree.tree_leaves(made))
        if not kinds.is_random(func):
            return made
        drawn = [x for x in pytree.tree_leaves(made) if isinstance(x, torch.Tensor)]
        if self._entered == 1:
            self._kept.append([x.clone() for x in drawn])
            return made
        k = next(self._next)
        for x, first in zip(drawn, self._kept[k] if k < len(self._kept) else ()):
            again = _again(first, x.shape)
            if again is not None:
                x.copy_(again)
        return made


def _again(first: torch.Tensor, shape: torch.Size) -> torch.Tensor | None:
    """first in a shape in which one dimension is twice as large, or none; else None."""
    if first.shape == shape:
        return first
    other = [d for d, (a, b) in enumerate(zip(first.shape, shape)) if a != b]
    if first.dim() == len(shape) and len(other) == 1 and 2 * first.shape[other[0]] == shape[other[0]]:
        return torch.cat([first, first], other[0])
    return None
