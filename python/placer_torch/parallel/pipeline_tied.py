"""Parameters that several stages read: each has its own, and they stay equal."""

from __future__ import annotations

from typing import Any, Iterable, Mapping

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.tensor import DTensor

from .mesh import Mesh
from .pipeline_cut import Cut
from .pipeline_places import Places, find
from .pipeline_stage import Stage


class Tied:
    """Gradients of a parameter are added up among the stages that read it, so that each
    process makes the same update. A process with several of these stages updates one, the
    first; the others have copies of it."""

    def __init__(self, cut: Cut, mesh: Mesh):
        self.cut, self.mesh = cut, mesh
        ranks = mesh.stages.size()
        holders: dict[str, list[int]] = {}
        for k in range(cut.count):
            for name in cut.parameters(k):
                holders.setdefault(name, []).append(k)
        self.holders = {name: ks for name, ks in holders.items() if len(ks) > 1}
        self.mine = {name: [k for k in ks if k % ranks == mesh.stage] for name, ks in self.holders.items()}
        self.groups = {name: self._group(sorted({k % ranks for k in ks})) for name, ks in self.holders.items()}
        self.copies: dict[str, dict[int, nn.Parameter]] = {}  # by stage, those behind the first here
        self.own: dict[str, torch.Tensor] = {}
        self.others: dict[str, list[torch.Tensor]] = {}

    def _group(self, stages: list[int]) -> dist.ProcessGroup | None:
        """The processes of these ranks of the pipeline, of this replica and part. Every
        process makes every group."""
        if len(stages) < 2:
            return None
        mine: Any = None
        for ranks in self.mesh.all.mesh[stages].flatten(1).t().tolist():
            made = dist.new_group(ranks)
            if dist.get_rank() in ranks:
                mine = made
        return mine

    def state(self, k: int) -> Mapping[str, torch.Tensor]:
        """What stage k is made of."""
        made = dict(self.cut.trace.state)
        for name, ks in self.mine.items():
            if k in ks[1:]:
                p = made[name]
                made[name] = self.copies.setdefault(name, {})[k] = nn.Parameter(p.detach().clone(), p.requires_grad)
        return made

    def paths(self, stages: Mapping[int, Stage]) -> dict[str, list[tuple[Stage, str]]]:
        """Where the copies are."""
        at = {id(p): (x, path) for x in stages.values() for path, p in x.named_parameters()}
        return {name: [at[id(p)] for p in of.values()] for name, of in self.copies.items()}

    def follow(self, places: Places, paths: Mapping[str, list[tuple[Stage, str]]]) -> None:
        """The parameters that stages have now that they are shared out among replicas."""
        self.own = {name: places.tensor(name) for name, ks in self.mine.items() if ks}
        self.others = {name: [find(x, path) for x, path in of] for name, of in paths.items()}
        self.copies.clear()

    def once(self, stages: Iterable[nn.Module]) -> list[torch.Tensor]:
        """The parameters of this process's stages, each once: those that are updated."""
        copies = {id(p) for of in self.others.values() for p in of}
        return [p for x in stages for p in x.parameters() if id(p) not in copies]

    def elsewhere(self) -> list[torch.Tensor]:
        """Those of them that the process of an earlier stage has too."""
        return [p for name, p in self.own.items() if self.mine[name][0] != self.holders[name][0]]

    def begin(self) -> None:
        for of in self.others.values():
            for p in of:
                p.grad = None

    def add(self) -> None:
        """Behind all backward passes."""
        for name, p in self.own.items():
            if not p.requires_grad:
                continue
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            for other in self.others.get(name, ()):
                if isinstance(other, DTensor) and isinstance(other.grad, DTensor):
                    other.grad = other.grad.redistribute(placements=other.placements)
                if other.grad is not None:
                    p.grad += other.grad
            group = self.groups[name]
            if group is not None:
                dist.all_reduce(p.grad.to_local() if isinstance(p.grad, DTensor) else p.grad, group=group)

    def copy(self) -> None:
        """Behind the update."""
        with torch.no_grad():
            for name, of in self.others.items():
                for p in of:
                    p.copy_(self.own[name])
