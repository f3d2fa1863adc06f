"""Where in this process's stages the model's parameters and buffers are."""

from __future__ import annotations

from typing import Collection, Mapping

import torch
from torch import nn

from ..optim import Optimizers
from . import optimizers
from .parts import Order
from .pipeline_stage import Stage
from .pipeline_trace import Trace


class Places:
    """By the model's name of a tensor the first stage here that has it and its path there,
    which stays as it is when a stage is shared out among replicas and gets other tensors."""

    def __init__(self, stages: Mapping[int, Stage], names: Mapping[int, str]):
        self._of: dict[str, tuple[Stage, str]] = {}
        for x in stages.values():
            for path, t in (*x.named_parameters(), *x.named_buffers()):
                if id(t) in names:
                    self._of.setdefault(names[id(t)], (x, path))

    def __contains__(self, name: str) -> bool:
        return name in self._of

    def tensor(self, name: str) -> torch.Tensor:
        stage, path = self._of[name]
        return find(stage, path)

    def leave(self, model: nn.Module, optimizer: Optimizers, traced: Trace, held: Collection[str], of_groups: list[list[str]], order: Order) -> dict[str, str]:
        """Leaves optimizer and model with what this process has. Parameters that stages hold, but not
        this process or only a share of, are on the meta device then; those that no step
        reads stay. Returns the keys of the model's state_dict with the tensors' names."""
        names = traced.names
        keys = {k: names[id(t)] for k, t in model.state_dict(keep_vars=True).items() if id(t) in names}
        optimizers.hold(optimizer, of_groups, lambda k, p: self.tensor(k) if k in self else None if k in held else p, order)
        for m in model.modules():
            for k, p in m._parameters.items():
                name = names.get(id(p), "")
                if p is not None and name in held and not (name in self and self.tensor(name) is p):
                    m._parameters[k] = nn.Parameter(torch.empty_like(p, device="meta"), p.requires_grad)
        traced.state.clear()
        return keys


def find(module: nn.Module, path: str) -> torch.Tensor:
    owner, _, name = path.rpartition(".")
    t = getattr(module.get_submodule(owner), name)
    assert isinstance(t, torch.Tensor)
    return t

