"""Whole states of a distributed model and of its optimizer, by torch's distributed state_dict API."""

from __future__ import annotations

import contextlib
import logging
from typing import Any, Callable, Iterator

import torch
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, get_optimizer_state_dict, set_model_state_dict, set_optimizer_state_dict

from .parts import Order

_WHOLE = StateDictOptions(full_state_dict=True, cpu_offload=True)
_GIVEN = StateDictOptions(full_state_dict=True)


def state_dict(model: nn.Module, order: Order) -> dict[str, Any]:
    """On rank 0; empty elsewhere."""
    with _quiet():
        return {k: order.restored(k, x) for k, x in get_model_state_dict(model, options=_WHOLE).items()}


def optimizer_state(model: nn.Module, optimizer: torch.optim.Optimizer, order: Order) -> dict[str, Any]:
    with _quiet():
        return _each(dict(get_optimizer_state_dict(model, optimizer, options=_WHOLE)), order.restored)


def load(model: nn.Module, optimizer: torch.optim.Optimizer, state: dict[str, Any], of_optimizer: dict[str, Any] | None, order: Order) -> None:
    """What the two functions above returned, whole."""
    set_model_state_dict(model, {k: order.arranged(k, x) for k, x in state.items()}, options=_GIVEN)
    if of_optimizer is not None:
        set_optimizer_state_dict(model, optimizer, _each(of_optimizer, order.arranged), options=_GIVEN)


def _each(of_optimizer: dict[str, Any], change: Callable[[str, Any], Any]) -> dict[str, Any]:
    """An optimizer's state with the rows of its tensors in another order."""
    state = {name: {k: change(name, x) for k, x in of.items()} for name, of in of_optimizer.get("state", {}).items()}
    return {**of_optimizer, "state": state} if "state" in of_optimizer else of_optimizer


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without torch's advice on the order of gathers, which a checkpoint is no place for."""
    log = logging.getLogger("torch.distributed.tensor._redistribute")
    was = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(was)
