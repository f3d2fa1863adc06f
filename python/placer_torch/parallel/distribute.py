"""A model, its loss and its optimizer by a strategy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable

import torch
from torch import nn

from ..clipping import Clip
from ..optim import Optimizers
from . import mesh as meshes, optimizers, products, refusals, share, start, strategy as strategies
from .apply import apply
from .clipping import Clipping
from .errors import StrategyError
from .parts import Order
from .strategy import Strategy
from .training import Training

Loss = Callable[[Any, Any], torch.Tensor]


def distribute(model: nn.Module, loss: Loss, optimizer: Optimizers | Callable[[Any], Optimizers], strategy: Strategy | str | Mapping[str, Any], *, device: str = "auto", loaded: bool = False, clip_norm: float | None = None, clip_value: float | None = None, norm_type: float = 2.0) -> Training:
    """Training of model by a strategy, of which every process of it calls this (torchrun).

    loss(model, batch) is the mean over the batch's samples. optimizer: of the model's
    parameters, before its first step, a list of those of some parameters each, or a function that
    makes it of them. Both model and optimizer are changed: they are this process's part from then on. strategy: a file, what
    it holds, or read. device: cpu, cuda (the GPU of torchrun's LOCAL_RANK) or auto.
    loaded: all processes have the same parameters already; else those of rank 0 are sent.
    clip_norm, clip_value: gradients are clipped before the update, as by
    torch.nn.utils.clip_grad_norm_ with norm_type and clip_grad_value_ of all parameters.

    Raises StrategyError with module and reason where the strategy cannot be applied, before
    anything is changed."""
    clip = Clip(clip_norm, clip_value, norm_type).checked(StrategyError)
    s = strategy if isinstance(strategy, Strategy) else strategies.read(strategy)
    made = optimizer if isinstance(optimizer, (torch.optim.Optimizer, Sequence)) else optimizer(model.parameters())
    s = products.with_tied_tables(model, s)
    refusals.check(model, made, s)
    here = meshes.start(s, device)
    if s.pipeline > 1:
        from . import pipeline  # torch.export takes seconds to import

        if not loaded:
            start.send(model, here)
        mesh = meshes.make(s, here)
        return pipeline.distribute(model, loss, made, s, mesh, Clipping(clip, mesh))
    start.move(model, here)
    if not loaded:
        start.send(model, here)
    mesh = meshes.make(s, here)
    start.agree(mesh)
    names = optimizers.names(model, made)
    apply(model, s, mesh)
    runs = share.share_model(model, s, mesh)
    optimizers.follow(made, model, names, Order(s.parts, s.tensor, s.transposed))
    clipping = Clipping(clip, mesh)
    clipping.hold(model.parameters())
    return Training(model, loss, made, s, mesh, clipping, runs)
