"""Whole states of a distributed model and of its optimizer, by torch's distributed state_dict API."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, get_optimizer_state_dict, set_model_state_dict, set_optimizer_state_dict

_WHOLE = StateDictOptions(full_state_dict=True, cpu_offload=True)
_GIVEN = StateDictOptions(full_state_dict=True)


def state_dict(model: nn.Module) -> dict[str, Any]:
    """On rank 0; empty elsewhere."""
    return dict(get_model_state_dict(model, options=_WHOLE))


def optimizer_state(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    return dict(get_optimizer_state_dict(model, optimizer, options=_WHOLE))


def load(model: nn.Module, optimizer: torch.optim.Optimizer, state: dict[str, Any], of_optimizer: dict[str, Any] | None) -> None:
    """What the two functions above returned, whole."""
    set_model_state_dict(model, state, options=_GIVEN)
    if of_optimizer is not None:
        set_optimizer_state_dict(model, optimizer, of_optimizer, options=_GIVEN)
