"""Optimizers that go on with the parameters that a strategy has made of the model's."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Iterator, Mapping

import torch
from torch import nn
from torch.distributed.tensor import DTensor

from ..optim import Optimizers, each, groups
from . import slots
from .errors import StrategyError
from .names import plain
from .parts import Order


def names(model: nn.Module, optimizer: Optimizers) -> list[list[str]]:
    """Of each group of the optimizers its parameters' names, without those of wrappers."""
    of = {id(p): plain(k) for k, p in model.named_parameters()}
    return [[of[id(p)] for p in g["params"]] for g in groups(optimizer)]


def follow(optimizer: Optimizers, model: nn.Module, names: list[list[str]], order: Order) -> None:
    """Has the optimizers' groups hold the parameters that model has by these names now."""
    of = {plain(k): p for k, p in model.named_parameters(remove_duplicate=False)}
    lost = next((k for ks in names for k in ks if k not in of), None)
    if lost is not None:
        raise StrategyError(f"parameter {lost}, which the optimizer holds, has another name in the model that the strategy made: its modules cannot be told apart from wrappers")
    hold(optimizer, names, lambda name, p: of[name], order)


def hold(optimizer: Optimizers, names: list[list[str]], now: Callable[[str, torch.Tensor], torch.Tensor | None], order: Order) -> None:
    """Has the optimizers' groups hold now(name, p) for each parameter p of theirs, or nothing. What they
    keep of it before their first step (Adagrad its sums) becomes that of the other."""
    for (o, g), ks in zip(_pairs(optimizer), names):
        others = [(p, now(k, p), k) for p, k in zip(g["params"], ks)]
        g["params"] = [q for _, q, _ in others if q is not None]
        for p, q, k in others:
            if q is not p:
                kept = o.state.pop(p, {})
                if q is not None:
                    slots.take(o, q, k, kept, order)


def _pairs(optimizer: Optimizers) -> Iterator[tuple[torch.optim.Optimizer, dict[str, Any]]]:
    """Each group with its optimizer."""
    return ((o, g) for o in each(optimizer) for g in o.param_groups)


def held(optimizer: Optimizers) -> list[torch.Tensor]:
    """Their parameters."""
    return [p for g in groups(optimizer) for p in g["params"]]


def whole_state(optimizer: Optimizers, names: list[list[str]], of: Callable[[torch.optim.Optimizer, str], slots.Slots | None]) -> dict[str, Any]:
    """State and groups by names of parameters, in the form of torch.distributed.checkpoint. of: what an
    optimizer keeps of a parameter, None of what is not to be asked for."""
    made = [(k, of(o, k)) for (o, _), ks in zip(_pairs(optimizer), names) for k in ks]
    named = [{**{k: v for k, v in g.items() if k != "params"}, "params": list(ks)} for g, ks in zip(groups(optimizer), names)]
    return {"state": {k: v for k, v in made if v}, "param_groups": named}


def take_state(optimizer: Optimizers, names: list[list[str]], state: Mapping[str, Any], take: Callable[[torch.optim.Optimizer, str, slots.Slots], None]) -> None:
    """What whole_state returned. A group takes over what the one has that held its first parameter;
    a parameter of which nothing was kept begins anew."""
    saved = {k: g for g in state.get("param_groups", ()) for k in g["params"]}
    for g, ks in zip(groups(optimizer), names):
        g.update({k: v for k, v in saved.get(ks[0], {}).items() if k != "params"} if ks else {})
    for (o, _), ks in zip(_pairs(optimizer), names):
        for k in ks:
            take(o, k, state.get("state", {}).get(k, {}))


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
