"""An optimizer that goes on with the parameters that a strategy has made of the model's."""

from __future__ import annotations

from typing import Iterable

import torch
from torch import nn
from torch.distributed.tensor import DTensor

from .errors import StrategyError
from .names import plain


def names(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[list[str]]:
    """Of each group of the optimizer its parameters' names, without those of wrappers."""
    of = {id(p): plain(k) for k, p in model.named_parameters()}
    return [[of[id(p)] for p in g["params"]] for g in optimizer.param_groups]


def follow(optimizer: torch.optim.Optimizer, model: nn.Module, names: list[list[str]]) -> None:
    """Has the optimizer's groups hold the parameters that model has by these names now."""
    of = {plain(k): p for k, p in model.named_parameters(remove_duplicate=False)}
    for g, ks in zip(optimizer.param_groups, names):
        lost = [k for k in ks if k not in of]
        if lost:
            raise StrategyError(f"parameter {lost[0]}, which the optimizer holds, has another name in the model that the strategy made: its modules cannot be told apart from wrappers")
        g["params"] = [of[k] for k in ks]


def held(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """Its parameters."""
    return [p for g in optimizer.param_groups for p in g["params"]]


def settle(parameters: Iterable[torch.Tensor]) -> None:
    """Adds up gradients of whole parameters of which each part has a summand."""
    for p in parameters:
        if isinstance(p, DTensor) and isinstance(p.grad, DTensor) and p.grad.placements != p.placements:
            p.grad = p.grad.redistribute(placements=p.placements)
