"""A strategy's losses and weights beside those of plain torch in one process."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any, Callable, Sequence

import torch
from torch import nn

from ..clipping import Clip
from . import micro


@dataclasses.dataclass
class Steps:
    losses: list[float]
    norms: list[float]  # of the gradients, where they are clipped by them
    state: dict[str, Any]  # behind the steps


class Reference:
    """The same steps of copies of model and optimizer, whole, in this process."""

    def __init__(self, model: nn.Module, loss: Callable[[Any, Any], torch.Tensor], optimizer: torch.optim.Optimizer, clip: Clip = Clip()):
        self._model, self._optimizer = copy.deepcopy((model, optimizer))
        self._loss, self._clip = loss, clip

    def run(self, batch: Any, steps: int, device: torch.device) -> Steps:
        self._model.to(device)
        batch = micro.to(batch, device)
        losses, norms = [], []
        for _ in range(steps):
            self._optimizer.zero_grad()
            value = self._loss(self._model, batch)
            value.backward()
            norm = self._clip.eager(self._model.parameters())
            if norm is not None:
                norms.append(float(norm.item()))
            self._optimizer.step()
            losses.append(float(value.item()))
        return Steps(losses, norms, self._model.state_dict())


def of_numbers(got: Sequence[float], want: Sequence[float]) -> float:
    """The largest relative difference."""
    return max((abs(a - b) / max(abs(b), 1e-30) for a, b in zip(got, want)), default=0.0)


def of_states(got: dict[str, Any], want: dict[str, Any]) -> float:
    """The largest difference of an element, relative to its tensor's largest."""
    worst = 0.0
    for k, w in want.items():
        if isinstance(w, torch.Tensor) and w.is_floating_point() and w.numel():
            a, b = got[k].double(), w.cpu().double()
            worst = max(worst, float((a - b).abs().max() / b.abs().max().clamp(min=1e-30)))
    return worst
