"""Steps of a distributed model."""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.distributed as dist
from torch import nn

from . import checkpoint, micro, optimizers, share, tensor
from .mesh import Mesh
from .strategy import Strategy


class Training:
    """Training steps by a strategy, of which this process makes its part."""

    def __init__(self, model: nn.Module, loss: Callable[[Any, Any], torch.Tensor], optimizer: torch.optim.Optimizer, strategy: Strategy, mesh: Mesh):
        self.model, self.loss, self.optimizer, self.strategy, self.mesh = model, loss, optimizer, strategy, mesh

    @property
    def replica(self) -> int:
        """Whose samples this process takes, of strategy.data replicas; processes of one
        replica take the same."""
        return self.mesh.replica

    def step(self, batch: Any) -> float:
        """One step of this replica's samples (strategy.samples of them): micro-batch by
        micro-batch, gradients added up and reduced, one update. Returns the mean loss over
        the samples of all replicas."""
        n = self.strategy.micro_batches
        self.optimizer.zero_grad()
        total = torch.zeros((), device=self.mesh.device)
        for k in range(n):
            share.before_pass(self.model, self.strategy, k == n - 1)
            with tensor.passes(self.strategy):
                value = self.loss(self.model, micro.to(micro.part(batch, k, n), self.mesh.device)) / n
                value.backward()
            total += tensor.whole(value.detach())
        optimizers.settle(self.optimizer)
        self.optimizer.step()
        return mean(total, self.mesh)

    def state_dict(self) -> dict[str, Any]:
        """Parameters and buffers as the model's own state_dict has them, whole, on the CPU.
        Every process has to call it."""
        return checkpoint.state_dict(self.model)


def mean(total: torch.Tensor, mesh: Mesh) -> float:
    """Of the replicas' losses."""
    if mesh.data.size() > 1:
        dist.all_reduce(total, group=mesh.data.get_group())
        total /= mesh.data.size()
    return float(total.item())
