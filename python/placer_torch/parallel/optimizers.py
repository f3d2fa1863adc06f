"""Optimizers that go on with the parameters that a strategy has made of the model's."""

from __future__ import annotations

from typing import Any, Iterable

import torch
from torch import nn
from torch.distributed.tensor import DTensor

from ..optim import Optimizers, each, groups
from .errors import StrategyError
from .names import plain


def names(model: nn.Module, optimizer: Optimizers) -> list[list[str]]:
    """Of each group of the optimizers its parameters' names, without those of wrappers."""
    of = {id(p): plain(k) for k, p in model.named_parameters()}
    return [[of[id(p)] for p in g["params"]] for g in groups(optimizer)]


def follow(optimizer: Optimizers, model: nn.Module, names: list[list[str]]) -> None:
    """Has the optimizers' groups hold the parameters that model has by these names now."""
    of = {plain(k): p for k, p in model.named_parameters(remove_duplicate=False)}
    for g, ks in zip(groups(optimizer), names):
        lost = [k for k in ks if k not in of]
        if lost:
            raise StrategyError(f"parameter {lost[0]}, which the optimizer holds, has another name in the model that the strategy made: its modules cannot be told apart from wrappers")
        g["params"] = [of[k] for k in ks]


def held(optimizer: Optimizers) -> list[torch.Tensor]:
    """Their parameters."""
    return [p for g in groups(optimizer) for p in g["params"]]


def state_of(optimizer: Optimizers, p: torch.Tensor) -> dict[str, Any]:
    """The state of p, in the optimizer that holds it."""
    several = each(optimizer)
    holder = several[0] if len(several) == 1 else next(o for o in several if any(x is p for g in o.param_groups for x in g["params"]))
    of: dict[str, Any] = holder.state[p]
    return of


def begin(optimizer: Optimizers) -> None:
    for o in each(optimizer):
        o.zero_grad()


def update(optimizer: Optimizers) -> None:
    for o in each(optimizer):
        o.step()


def settle(parameters: Iterable[torch.Tensor]) -> None:
    """Adds up gradients of whole parameters of which each part has a summand."""
    for p in parameters:
        if isinstance(p, DTensor) and isinstance(p.grad, DTensor) and p.grad.placements != p.placements:
            p.grad = p.grad.redistribute(placements=p.placements)
