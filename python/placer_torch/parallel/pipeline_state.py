"""Whole states of a model in stages, and of its optimizer, to and from rank 0."""

from __future__ import annotations

import ctypes
import io
from typing import Any, Mapping, Sequence

import torch
import torch.distributed as dist
from torch import nn

from ..errors import RunError
from ..optim import Optimizers
from . import optimizers, slots
from .mesh import Mesh
from .parts import Order
from .pipeline_places import Places

State = dict[str, Any]


class States:
    """holders: the first stage of each tensor that a stage changes, by the model's name of it.
    keys: those of the model's state_dict with the names. groups: names of the
    optimizer's parameters, those of other processes too. Every process has to call each
    method."""

    def __init__(self, model: nn.Module, optimizer: Optimizers, places: Places, holders: Mapping[str, int], keys: Mapping[str, str], groups: list[list[str]], mesh: Mesh, order: Order):
        self.model, self.optimizer, self.places, self.holders, self.keys, self.mesh = model, optimizer, places, holders, keys, mesh
        self.groups, self.order = groups, order

    def of_model(self) -> State:
        found = {}
        for name in dict.fromkeys(self.keys.values()):
            if name in self.holders:
                found[name] = self._fetched(name, lambda: self.order.restored(name, slots.copied(self.places.tensor(name))))
        if dist.get_rank():
            return {}
        own = self.model.state_dict()
        return {key: found[name] if name in found else slots.copied(own[key]) for key, name in self.keys.items()}

    def of_optimizer(self) -> State:
        made = optimizers.whole_state(self.optimizer, self.groups, self._slots)
        return {} if dist.get_rank() else made

    def _slots(self, optimizer: torch.optim.Optimizer, name: str) -> State | None:
        if name not in self.holders:
            return None
        fetched: State | None = self._fetched(name, lambda: slots.whole(optimizer, self.places.tensor(name), name, self.order))
        return fetched

    def load(self, state: State, of_optimizer: State | None) -> None:
        """What rank 0 has."""
        check_keys(state, self.model, self.mesh)
        for key, name in self.keys.items():
            value, t = broadcast(state[key] if not dist.get_rank() else None, self.mesh), self._own(name)
            if t is not None:
                with torch.no_grad():
                    t.copy_(slots.laid_out(self.order.arranged(name, value), t))
        if broadcast(of_optimizer is not None, self.mesh):
            self.load_optimizer(of_optimizer or {})

    def load_optimizer(self, state: State) -> None:
        """Group by group and parameter by parameter, for not every process has room for all."""
        there = {"param_groups": broadcast(state.get("param_groups", []), self.mesh), "state": _Each(state.get("state", {}), self.mesh)}
        optimizers.take_state(self.optimizer, self.groups, there, self._take)

    def _take(self, optimizer: torch.optim.Optimizer, name: str, of: State) -> None:
        if name in self.places:
            slots.take(optimizer, self.places.tensor(name), name, of, self.order)

    def _own(self, name: str) -> torch.Tensor | None:
        if name in self.places:
            return self.places.tensor(name)
        own = dict((*self.model.named_parameters(), *self.model.named_buffers())).get(name)
        return own if own is None or not own.is_meta else None

    def _fetched(self, name: str, value: Any) -> Any:
        """On rank 0 value() of the first holder, of whose processes each calls it; else None."""
        stage = self.holders[name] % self.mesh.stages.size()
        made = value() if stage == self.mesh.stage else None
        if self.mesh.replica or self.mesh.part:
            return None
        if stage == 0 or self.mesh.stage not in (0, stage):
            return made
        group = self.mesh.stages.get_group()
        if self.mesh.stage == stage:
            data = _packed(made, self.mesh.device)
            dist.send(torch.tensor([data.numel()], device=data.device), group=group, group_dst=0)
            dist.send(data, group=group, group_dst=0)
            return None
        size = torch.zeros(1, dtype=torch.long, device=self.mesh.device)
        dist.recv(size, group=group, group_src=stage)
        data = torch.empty(int(size.item()), dtype=torch.uint8, device=self.mesh.device)
        dist.recv(data, group=group, group_src=stage)
        return _unpacked(data)


class _Each:
    """Of each name what rank 0 has, on all processes, which ask for the same ones."""

    def __init__(self, of: Mapping[str, Any], mesh: Mesh):
        self._of, self._mesh = of, mesh

    def get(self, name: str, other: Any) -> Any:
        return broadcast(self._of.get(name, other), self._mesh)


def check_keys(state: State, model: nn.Module, mesh: Mesh) -> None:
    """Raises RunError on all processes where rank 0's state has other keys than the model's."""
    want = model.state_dict()
    lost, more = [k for k in want if k not in state], [k for k in state if k not in want]
    wrong, what = (lost, "the state has no {}, which the model has") if lost else (more, "the state has {}, which the model does not")
    said = broadcast(what.format(wrong[0] + (f" and {len(wrong) - 1} more" if len(wrong) > 1 else "")) if wrong else "", mesh)
    if said:
        raise RunError(said)


def _packed(value: Any, device: torch.device) -> torch.Tensor:
    """As bytes; torch.distributed's own objects need NumPy."""
    out = io.BytesIO()
    torch.save(value, out)
    return torch.frombuffer(bytearray(out.getbuffer()), dtype=torch.uint8).to(device)


def _unpacked(data: torch.Tensor) -> Any:
    data = data.cpu().contiguous()
    return torch.load(io.BytesIO(ctypes.string_at(data.data_ptr(), data.numel())), weights_only=True)


def broadcast(value: Any, mesh: Mesh) -> Any:
    """What rank 0 has, on all processes."""
    first = dist.get_rank() == 0
    data = _packed(value, mesh.device) if first else torch.empty(0, dtype=torch.uint8, device=mesh.device)
    size = torch.tensor([data.numel()], device=mesh.device)
    dist.broadcast(size, 0)
    if not first:
        data = torch.empty(int(size.item()), dtype=torch.uint8, device=mesh.device)
    dist.broadcast(data, 0)
    return value if first else _unpacked(data)
