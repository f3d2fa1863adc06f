"""Steps of a distributed model."""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.distributed as dist
from torch import nn

from .. import checks
from ..optim import Optimizers
from . import checkpoint, mean as means, micro, optimizers, passes, share, start, tensor, tokens
from .clipping import Clipping
from .mesh import Mesh
from .parts import Order
from .strategy import Strategy


class Training:
    """Training steps by a strategy, of which this process makes its part."""

    def __init__(self, model: nn.Module, loss: Callable[[Any, Any], torch.Tensor], optimizer: Optimizers, strategy: Strategy, mesh: Mesh, clipping: Clipping, runs: nn.Module | None = None):
        """runs: what runs a loss of model, None where something else makes the passes."""
        self.model, self.loss, self.optimizer, self.strategy, self.mesh = model, loss, optimizer, strategy, mesh
        self._clipping, self._runs = clipping, share.Passes(model) if runs is None else runs
        self._order = Order(strategy.parts, strategy.tensor, strategy.transposed)
        self._began = False  # whether batch and loss of a first step were found right

    @property
    def replica(self) -> int:
        """Whose samples this process takes, of strategy.groups; processes of one replica take the same,
        and replicas that share tokens out."""
        return self.mesh.group

    def step(self, batch: Any) -> float:
        """One step of this replica's samples (strategy.samples of them): micro-batch by
        micro-batch, gradients added up, reduced and clipped, one update. Returns the mean loss over
        the samples of all replicas."""
        n = self.strategy.micro_batches
        if not self._began:
            start.same_batch(batch, self.mesh)
        parts = [micro.to(micro.part(batch, k, n, self.strategy.samples), self.mesh.device) for k in range(n)]
        if not self._began and self.strategy.groups * n > 1:
            means.check(self.model, self._value, parts[0], self.mesh.device)
        self._began = True
        self._runs = share.of_trained(self._runs, self.model, self.strategy, self.mesh)
        share.begin(self.optimizer, [self._runs], n > 1)
        total = torch.zeros((), dtype=torch.float64, device=self.mesh.device)
        for k, part in enumerate(parts):
            total += self._pass(part, k == n - 1) / n
        share.behind_passes(self._runs)
        optimizers.settle(optimizers.held(self.optimizer))
        share.reduce(self.model, self.strategy, self.mesh)
        self._clipping.clip()
        optimizers.update(self.optimizer)
        return mean(total, self.mesh)

    def grad_norm(self) -> float:
        """The norm of all gradients of the last step, before they were clipped by it, on every
        process."""
        return self._clipping.norm()

    def _pass(self, part: Any, last: bool) -> torch.Tensor:
        """Forward and backward pass of a micro-batch; returns its loss."""
        with passes.passes(self.strategy, self.model, self.mesh):
            share.before_loss(self._runs, last)
            value = self._loss_of(part)
            share.before_backward(self._runs, self.strategy, last)
            (value / self.strategy.micro_batches).backward()
        return tensor.whole(value.detach())

    def _value(self, part: Any) -> torch.Tensor:
        with passes.passes(self.strategy, self.model, self.mesh):
            return tensor.whole(self._loss_of(part))

    def _loss_of(self, part: Any) -> torch.Tensor:
        if self.mesh.tokens is not None:
            part = tokens.shared(part, self.mesh.tokens)
        with checks.no_loss_scaling():
            value = self._runs(lambda: self.loss(self.model, part))
        return value if self.mesh.tokens is None else tokens.whole(value)

    def state_dict(self) -> dict[str, Any]:
        """Parameters and buffers as the model's own state_dict has them, whole, on the
        CPU, on rank 0; empty elsewhere. Every process has to call it."""
        return checkpoint.state_dict(self.model, self._order)

    def optimizer_state(self) -> dict[str, Any]:
        """The optimizer's state by names of parameters, whole, on rank 0. Every process has
        to call it."""
        return checkpoint.optimizer_state(self.model, self.optimizer, self._order)

    def load_state_dict(self, state: dict[str, Any], optimizer: dict[str, Any] | None = None) -> None:
        """Takes what state_dict and optimizer_state returned on rank 0, of any strategy. Every
        process has to call it, and to have the whole of it, as from a file."""
        checkpoint.load(self.model, self.optimizer, state, optimizer, self._order)


def mean(total: torch.Tensor, mesh: Mesh) -> float:
    """Of the replicas' losses."""
    if mesh.data.size() > 1:
        dist.all_reduce(total, group=mesh.data.get_group())
        total /= mesh.data.size()
    return float(total.item())
