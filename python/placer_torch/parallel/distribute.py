"""A model, its loss and its optimizer by a strategy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

import torch
from torch import nn

from . import mesh as meshes, optimizers, refusals, start, strategy as strategies
from .apply import apply
from .strategy import Strategy
from .training import Training

Optimizer = torch.optim.Optimizer
Loss = Callable[[Any, Any], torch.Tensor]


def distribute(model: nn.Module, loss: Loss, optimizer: Optimizer | Callable[[Any], Optimizer], strategy: Strategy | str | Mapping[str, Any], *, device: str = "auto", loaded: bool = False) -> Training:
    """Training of model by a strategy, of which every process of it calls this (torchrun).

    loss(model, batch) is the mean over the batch's samples. optimizer: of the model's
    parameters, before its first step, or a function that makes it of them. Both model and
    optimizer are changed: they are this process's part from then on. strategy: a file, what
    it holds, or read. device: cpu, cuda (the GPU of torchrun's LOCAL_RANK) or auto.
    loaded: all processes have the same parameters already; else those of rank 0 are sent.

    Raises StrategyError with module and reason where the strategy cannot be applied, before
    anything is changed."""
    s = strategy if isinstance(strategy, Strategy) else strategies.read(strategy)
    made = optimizer if isinstance(optimizer, Optimizer) else optimizer(model.parameters())
    refusals.check(model, made, s)
    here = meshes.start(s, device)
    if s.pipeline > 1:
        from . import pipeline  # torch.export takes seconds to import

        if not loaded:
            start.send(model, here)
        return pipeline.distribute(model, loss, made, s, meshes.make(s, here))
    start.move(model, here)
    if not loaded:
        start.send(model, here)
    mesh = meshes.make(s, here)
    start.agree(mesh)
    names = optimizers.names(model, made)
    applied = apply(model, s, mesh)
    optimizers.follow(made, applied, names)
    return Training(applied, loss, made, s, mesh)
