"""Whole states of a distributed model and of its optimizer, by torch's distributed state_dict API."""

from __future__ import annotations

import contextlib
import logging
from typing import Any, Callable, Iterable, Iterator

from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, get_optimizer_state_dict, set_model_state_dict, set_optimizer_state_dict

from ..optim import Optimizers, each
from .names import plain
from .parts import Order

_WHOLE = StateDictOptions(full_state_dict=True, cpu_offload=True)
_GIVEN = StateDictOptions(full_state_dict=True)


def state_dict(model: nn.Module, order: Order) -> dict[str, Any]:
    """On rank 0; empty elsewhere."""
    with _quiet():
        found = {plain(k): order.restored(k, x) for k, x in get_model_state_dict(model, options=_WHOLE).items()}
    return {k: found[plain(k)] for k in model.state_dict() if plain(k) in found}


def optimizer_state(model: nn.Module, optimizer: Optimizers, order: Order) -> dict[str, Any]:
    with _quiet():
        return _each(dict(get_optimizer_state_dict(model, each(optimizer), options=_WHOLE)), order.restored, _names(model.state_dict()))


def load(model: nn.Module, optimizer: Optimizers, state: dict[str, Any], of_optimizer: dict[str, Any] | None, order: Order) -> None:
    """What the two functions above returned, whole."""
    torchs = _names(get_model_state_dict(model))
    set_model_state_dict(model, {torchs.get(plain(k), k): order.arranged(k, x) for k, x in state.items()}, options=_GIVEN)
    if of_optimizer is not None:
        set_optimizer_state_dict(model, each(optimizer), _each(of_optimizer, order.arranged, torchs), options=_GIVEN)


def _names(of: Iterable[str]) -> dict[str, str]:
    """By plain names those of torch's, which leaves wrappers out, but not in all places, or of the model's own."""
    return {plain(k): k for k in of}


def _each(of_optimizer: dict[str, Any], change: Callable[[str, Any], Any], names: dict[str, str]) -> dict[str, Any]:
    """An optimizer's state with the rows of its tensors in another order, and with other names."""

    def named(k: str) -> str:
        return names.get(plain(k), k)

    state = {named(name): {k: change(name, x) for k, x in of.items()} for name, of in of_optimizer.get("state", {}).items()}
    groups = [{k: [named(name) for name in x] if k == "params" else x for k, x in g.items()} for g in of_optimizer.get("param_groups", ())]
    return of_optimizer | {k: x for k, x in (("state", state), ("param_groups", groups)) if k in of_optimizer}


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
