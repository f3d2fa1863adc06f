"""A strategy's losses and weights beside those of plain torch in one process."""

from __future__ import annotations

import copy
import dataclasses
import math
from typing import Any, Callable, Sequence

import torch
from torch import nn

from ..clipping import Clip
from ..optim import Optimizers
from . import micro, optimizers
from .strategy import Strategy

LEAST = 1e-4

Loss = Callable[[Any, Any], torch.Tensor]


@dataclasses.dataclass
class Steps:
    losses: list[float]
    norms: list[float]  # of the gradients, where they are clipped by them
    state: dict[str, Any]  # behind the steps


class Reference:
    """The same steps of copies of model and optimizer, whole, in this process."""

    def __init__(self, model: nn.Module, loss: Loss, optimizer: Optimizers, clip: Clip = Clip(), again: Callable[[], tuple[nn.Module, Loss, Optimizers]] | None = None):
        """again: what makes the three once more, where they cannot be copied, as a pruned model with the
        products that it keeps."""
        self._loss, self._clip = loss, clip
        try:
            self._model, self._optimizer = copy.deepcopy((model, optimizer))
        except Exception:
            if again is None:
                raise
            self._model, self._loss, self._optimizer = again()
            self._model.load_state_dict(model.state_dict())

    def run(self, batch: Any, steps: int, device: torch.device) -> Steps:
        return self._run([[micro.to(batch, device)]], steps, device)

    def changed(self, batch: Any, device: torch.device) -> list[str]:
        """The buffers that a pass changes, as batch norm's statistics, so that what a sample
        gives depends on the others of its micro-batch."""
        model = self._model.to(device)
        before = {k: b.clone() for k, b in model.named_buffers()}
        self._loss(model, micro.to(batch, device))
        now = dict(model.named_buffers())
        changed = [k for k, b in now.items() if b.dim() and not torch.equal(b, before[k])]
        _copy([before[k] for k in now], list(now.values()))
        return changed

    def run_parts(self, batch: Any, steps: int, device: torch.device, s: Strategy) -> Steps:
        """By the micro-batches of a strategy, each replica's with buffers of its own."""
        of = [micro.part(batch, k, s.groups, s.batch) for k in range(s.groups)]
        parts = [[micro.to(micro.part(x, k, s.micro_batches, s.samples), device) for k in range(s.micro_batches)] for x in of]
        return self._run(parts, steps, device)

    def _run(self, replicas: Sequence[Sequence[Any]], steps: int, device: torch.device) -> Steps:
        model = self._model.to(device)
        kept = [[b.clone() for b in model.buffers()] for _ in replicas]
        n = sum(len(parts) for parts in replicas)
        losses, norms = [], []
        for _ in range(steps):
            optimizers.begin(self._optimizer)
            total = 0.0
            for parts, buffers in zip(replicas, kept):
                _copy(buffers, list(model.buffers()))
                for part in parts:
                    value = self._loss(model, part) / n
                    value.backward()
                    total += float(value.item())
                _copy(list(model.buffers()), buffers)
            norm = self._clip.eager(model.parameters())
            if norm is not None:
                norms.append(float(norm.item()))
            optimizers.update(self._optimizer)
            losses.append(total)
        _copy(kept[0], list(model.buffers()))
        return Steps(losses, norms, model.state_dict())


def _copy(of: Sequence[torch.Tensor], to: Sequence[torch.Tensor]) -> None:
    for a, b in zip(of, to, strict=True):
        b.data.copy_(a)


def of_numbers(got: Sequence[float], want: Sequence[float]) -> float:
    """The largest relative difference."""
    return max((abs(a - b) / max(abs(b), 1e-30) for a, b in zip(got, want)), key=size, default=0.0)


def size(difference: float) -> float:
    """What is no number is the largest of all."""
    return math.inf if math.isnan(difference) else difference


def by_tensors(got: dict[str, Any], want: dict[str, Any]) -> dict[str, float]:
    """The largest difference of an element of each tensor, relative to its largest, but to no less
    than LEAST of the largest of all: what is zero but for rounding, as the bias of keys, is no
    measure of itself."""
    floats = {k: w.cpu().double() for k, w in want.items() if isinstance(w, torch.Tensor) and w.is_floating_point() and w.numel()}
    least = max(LEAST * max((float(b.abs().max()) for b in floats.values()), default=0.0), 1e-30)
    return {k: float((got[k].double() - b).abs().max() / b.abs().max().clamp(min=least)) for k, b in floats.items()}


def of_states(got: dict[str, Any], want: dict[str, Any]) -> float:
    """The largest of by_tensors."""
    return max(by_tensors(got, want).values(), key=size, default=0.0)
