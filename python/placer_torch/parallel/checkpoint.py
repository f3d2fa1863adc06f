"""Whole states of a distributed model and of its optimizer, by torch's distributed state_dict API."""

from __future__ import annotations

import contextlib
import logging
from typing import Any, Iterable, Iterator

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, set_model_state_dict
from torch.distributed.tensor import DTensor

from ..optim import Optimizers
from . import optimizers, slots
from .names import plain
from .parts import Order

_WHOLE = StateDictOptions(full_state_dict=True, cpu_offload=True)
_GIVEN = StateDictOptions(full_state_dict=True)


def state_dict(model: nn.Module, order: Order) -> dict[str, Any]:
    """On rank 0; empty elsewhere. What is on the host and whole as it is torch returns itself: it is copied."""
    here = (t.detach() for t in (*model.parameters(), *model.buffers()))
    live = {(t.to_local() if isinstance(t, DTensor) else t).untyped_storage().data_ptr() for t in here}
    with _quiet():
        found = {plain(k): order.restored(k, _kept(x, live)) for k, x in get_model_state_dict(model, options=_WHOLE).items()}
    return {k: found[plain(k)] for k in model.state_dict() if plain(k) in found}


def _kept(x: Any, live: set[int]) -> Any:
    return x.clone() if isinstance(x, torch.Tensor) and x.untyped_storage().data_ptr() in live else x


def optimizer_state(model: nn.Module, optimizer: Optimizers, order: Order) -> dict[str, Any]:
    """As torch.distributed.checkpoint has it, but that it makes no step of the optimizer before the first."""
    own = dict(model.named_parameters())
    torchs = _names(model.state_dict())
    of = {torchs.get(plain(k), plain(k)): p for k, p in own.items()}
    names = [[torchs.get(k, k) for k in ks] for ks in optimizers.names(model, optimizer)]
    first = dist.get_rank() == 0
    with _quiet():
        made = optimizers.whole_state(optimizer, names, lambda o, k: slots.whole(o, of[k], k, order) if first else slots.gathered(o, of[k]))
    return made if first else {}


def load(model: nn.Module, optimizer: Optimizers, state: dict[str, Any], of_optimizer: dict[str, Any] | None, order: Order) -> None:
    """What the two functions above returned, whole."""
    torchs = _names(get_model_state_dict(model))
    set_model_state_dict(model, {torchs.get(plain(k), k): order.arranged(k, x) for k, x in state.items()}, options=_GIVEN)
    if of_optimizer is not None:
        of = {plain(k): p for k, p in model.named_parameters()}
        optimizers.take_state(optimizer, optimizers.names(model, optimizer), _plain(of_optimizer), lambda o, k, x: slots.take(o, of[k], k, x, order))


def _names(of: Iterable[str]) -> dict[str, str]:
    """By plain names those of torch's, which leaves wrappers out, but not in all places, or of the model's own."""
    return {plain(k): k for k in of}


def _plain(of_optimizer: dict[str, Any]) -> dict[str, Any]:
    """An optimizer's state by plain names."""
    state = {plain(name): of for name, of in of_optimizer.get("state", {}).items()}
    return {"state": state, "param_groups": [{**g, "params": [plain(k) for k in g["params"]]} for g in of_optimizer.get("param_groups", ())]}


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
