"""Whole states of a distributed model and of its optimizer, by torch's distributed state_dict API."""

from __future__ import annotations

import contextlib
import logging
from typing import Any, Iterator

import torch
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, get_optimizer_state_dict, set_model_state_dict, set_optimizer_state_dict

_WHOLE = StateDictOptions(full_state_dict=True, cpu_offload=True)
_GIVEN = StateDictOptions(full_state_dict=True)


def state_dict(model: nn.Module) -> dict[str, Any]:
    """On rank 0; empty elsewhere."""
    with _quiet():
        return dict(get_model_state_dict(model, options=_WHOLE))


def optimizer_state(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    with _quiet():
        return dict(get_optimizer_state_dict(model, optimizer, options=_WHOLE))


def load(model: nn.Module, optimizer: torch.optim.Optimizer, state: dict[str, Any], of_optimizer: dict[str, Any] | None) -> None:
    """What the two functions above returned, whole."""
    set_model_state_dict(model, state, options=_GIVEN)
    if of_optimizer is not None:
        set_optimizer_state_dict(model, optimizer, of_optimizer, options=_GIVEN)


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
