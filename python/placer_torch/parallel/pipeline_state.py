"""Whole states of a model in stages, and of its optimizer, to and from rank 0."""

from __future__ import annotations

import ctypes
import io
from typing import Any, Mapping, Sequence

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.tensor import DTensor, distribute_tensor

from ..optim import Optimizers, groups
from .mesh import Mesh
from .optimizers import state_of
from .parts import Order
from .pipeline_places import Places, whole

State = dict[str, Any]


class States:
    """holders: the first stage of each tensor that a stage changes, by the model's name of it.
    keys: those of the model's state_dict with the names. groups: names of the
    optimizer's parameters, those of other processes too. Every process has to call each
    method."""

    def __init__(self, model: nn.Module, optimizer: Optimizers, places: Places, holders: Mapping[str, int], keys: Mapping[str, str], groups: Sequence[Sequence[str]], mesh: Mesh, order: Order):
        self.model, self.optimizer, self.places, self.holders, self.keys, self.mesh = model, optimizer, places, holders, keys, mesh
        self.groups, self.order = groups, order

    def of_model(self) -> State:
        found = {}
        for name in dict.fromkeys(self.keys.values()):
            if name in self.holders:
                found[name] = self._fetched(name, lambda: self.order.restored(name, _copied(self.places.tensor(name))))
        if dist.get_rank():
            return {}
        own = self.model.state_dict()
        return {key: found[name] if name in found else _copied(own[key]) for key, name in self.keys.items()}

    def of_optimizer(self) -> State:
        def part(name: str) -> State:
            return {k: self.order.restored(name, _copied(v)) if isinstance(v, torch.Tensor) else v for k, v in state_of(self.optimizer, self.places.tensor(name)).items()}

        state = {name: self._fetched(name, lambda: part(name)) for names in self.groups for name in names if name in self.holders}
        if dist.get_rank():
            return {}
        named = [{**{k: v for k, v in g.items() if k != "params"}, "params": names} for g, names in zip(groups(self.optimizer), self.groups)]
        return {"state": {k: v for k, v in state.items() if v}, "param_groups": named}

    def load(self, state: State, of_optimizer: State | None) -> None:
        """What rank 0 has."""
        for key, name in self.keys.items():
            value, t = _broadcast(state.get(key), self.mesh), self._own(name)
            if value is not None and t is not None:
                with torch.no_grad():
                    t.copy_(_like(self.order.arranged(name, value), t))
        if _broadcast(of_optimizer is not None, self.mesh):
            self._load_optimizer(of_optimizer or {})

    def _load_optimizer(self, state: State) -> None:
        for g, more in zip(groups(self.optimizer), _broadcast([{k: v for k, v in g.items() if k != "params"} for g in state.get("param_groups", ())], self.mesh)):
            g.update(more)
        for name in (name for names in self.groups for name in names):
            value = _broadcast(state.get("state", {}).get(name), self.mesh)
            if value and name in self.places:
                p = self.places.tensor(name)
                own = state_of(self.optimizer, p)
                own.clear()
                own |= {k: _like(self.order.arranged(name, v), p).clone() if isinstance(v, torch.Tensor) and v.shape == p.shape else v for k, v in value.items()}

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


def _copied(t: torch.Tensor) -> torch.Tensor:
    """Whole, on the host, and not the one that training goes on with."""
    return whole(t).detach().to("cpu", copy=True)


def _like(value: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    value = value.to(t.device)
    return distribute_tensor(value, t.device_mesh, t.placements, src_data_rank=None) if isinstance(t, DTensor) else value


def _packed(value: Any, device: torch.device) -> torch.Tensor:
    """As bytes; torch.distributed's own objects need NumPy."""
    out = io.BytesIO()
    torch.save(value, out)
    return torch.frombuffer(bytearray(out.getbuffer()), dtype=torch.uint8).to(device)


def _unpacked(data: torch.Tensor) -> Any:
    data = data.cpu().contiguous()
    return torch.load(io.BytesIO(ctypes.string_at(data.data_ptr(), data.numel())), weights_only=True)


def _broadcast(value: Any, mesh: Mesh) -> Any:
    """What rank 0 has, on all processes."""
    first = dist.get_rank() == 0
    data = _packed(value, mesh.device) if first else torch.empty(0, dtype=torch.uint8, device=mesh.device)
    size = torch.tensor([data.numel()], device=mesh.device)
    dist.broadcast(size, 0)
    if not first:
        data = torch.empty(int(size.item()), dtype=torch.uint8, device=mesh.device)
    dist.broadcast(data, 0)
    return value if first else _unpacked(data)
