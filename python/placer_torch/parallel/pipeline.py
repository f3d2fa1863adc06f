"""Training by a pipeline: the model's step cut into stages, which torch's schedules run."""

from __future__ import annotations

import copy
from typing import Any, Callable

import torch
import torch.distributed as dist
from torch import nn

from ..optim import Optimizers
from . import checkpoint, mean as means, micro, start
from .clipping import Clipping
from .errors import StrategyError
from .mesh import Mesh
from .parts import Order
from .pipeline_cut import homes
from .pipeline_run import Run
from .pipeline_state import broadcast, check_keys
from .strategy import Strategy
from .training import Training

Loss = Callable[[Any, Any], torch.Tensor]


def distribute(model: nn.Module, loss: Loss, optimizer: Optimizers, s: Strategy, mesh: Mesh, clipping: Clipping) -> Pipeline:
    """The training of model by a strategy with stages. The model is cut at its first step,
    for which it takes a batch."""
    if s.schedule != "interleaved" and s.chunks > 1:
        raise StrategyError(f"{s.strategy}: {s.chunks} stages a rank, of schedule {s.schedule}: interleaved alone has several")
    m, rounds = s.micro_batches, max(1, s.micro_batches // s.pipeline)
    if s.schedule == "1f1b" and m < s.pipeline:
        raise StrategyError(f"{s.strategy}: {m} micro-batches, and 1f1b wants {s.pipeline} or more, one a stage")
    if s.schedule == "interleaved" and m % rounds:
        raise StrategyError(f"{s.strategy}: {m} micro-batches, and interleaved wants a multiple of {rounds}, the rounds of {s.pipeline}")
    homes(model, s.stages)
    hooked = next((k for k, p in model.named_parameters() if p._backward_hooks or p._post_accumulate_grad_hooks), None)
    if hooked is not None and s.divided:
        raise StrategyError(f"parameter {hooked} has a hook of its gradient, of which {s.strategy} has shares alone: remove it")
    start.agree(mesh)
    return Pipeline(model, loss, optimizer, s, mesh, clipping)


class Pipeline(Training):
    """Training steps of which this process makes its stages' part, for its replica."""

    def __init__(self, model: nn.Module, loss: Loss, optimizer: Optimizers, strategy: Strategy, mesh: Mesh, clipping: Clipping):
        super().__init__(model, loss, optimizer, strategy, mesh, clipping)
        self._run: Run | None = None
        self._loaded: dict[str, Any] | None = None  # an optimizer's state for the stages

    def step(self, batch: Any) -> float:
        """One step of this replica's samples (strategy.samples of them), which the processes
        of all its stages are given. Returns the mean loss over the samples of all replicas.
        The first step cuts the model: StrategyError where that cannot be, with nothing changed."""
        n = self.strategy.micro_batches
        if not self._began:
            start.same_batch(batch, self.mesh)
        parts = [micro.to(micro.part(batch, k, n, self.strategy.samples), self.mesh.device) for k in range(n)]
        if not self._began and self.strategy.data * n > 1:
            self._check_mean(parts[0])
        self._began = True
        if self._run is None:
            self._run = Run(self.model, self.loss, self.optimizer, self.strategy, self.mesh, self._clipping, parts[0])
            if self._loaded is not None:
                self._run.states.load_optimizer(self._loaded)
                self._loaded = None
        return self._run.step(parts)

    def _check_mean(self, part: Any) -> None:
        """Where the whole model is on the device already, as on CPUs."""
        if all(p.device == self.mesh.device for p in self.model.parameters()):
            means.check(self.model, lambda b: self.loss(self.model, b), part, self.mesh.device)

    def state_dict(self) -> dict[str, Any]:
        """Parameters and buffers as the model's own state_dict has them, whole, on the CPU,
        on rank 0; empty elsewhere. Every process has to call it."""
        if self._run is not None:
            return self._run.states.of_model()
        return checkpoint.state_dict(self.model, Order({}, 1))

    def optimizer_state(self) -> dict[str, Any]:
        if self._run is not None:
            return self._run.states.of_optimizer()
        return super().optimizer_state() if self._loaded is None else copy.deepcopy(self._loaded)

    def load_state_dict(self, state: dict[str, Any], optimizer: dict[str, Any] | None = None) -> None:
        """What rank 0 has. Before the first step too, which takes the optimizer's in when the model is cut."""
        if self._run is not None:
            self._run.load(state, optimizer)
            return
        check_keys(state, self.model, self.mesh)
        if dist.get_rank() == 0:
            self.model.load_state_dict(state)
        start.send(self.model, self.mesh.device)
        self._loaded = (optimizer or {}) if broadcast(optimizer is not None, self.mesh) else None

    @property
    def sent(self) -> dict[str, int]:
        """Calls and bytes that this process sends to other stages in a step: values and
        their gradients. Known behind the first step."""
        return self._run.sent() if self._run is not None else {"calls": 0, "bytes": 0}
