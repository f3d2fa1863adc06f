"""Gradients clipped where processes have stages, parts or shares of them: by value, or by the
norm of all of them, in which each counts once."""

from __future__ import annotations

from typing import Collection, Iterable

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor

from ..clipping import Clip
from ..errors import RunError
from . import optimizers
from .mesh import Mesh

Among = tuple[DeviceMesh, tuple[int, ...]]  # a mesh, and the dimensions of it that divide a parameter


class Clipping:
    """What is done with gradients between their reduction and the update, and their norm then."""

    def __init__(self, clip: Clip, mesh: Mesh):
        self._clip, self._mesh = clip, mesh
        self._parameters: list[torch.Tensor] = []
        self._counted: dict[Among | None, list[torch.Tensor]] = {}
        self._norm: torch.Tensor | None = None

    def hold(self, parameters: Iterable[torch.Tensor], elsewhere: Collection[torch.Tensor] = ()) -> None:
        """The parameters of this process, in the layout in which they are updated, each once.
        elsewhere: those of them that a process of another stage has too, which counts them."""
        self._parameters = list(parameters)  # frozen ones too, which may be trained later
        self._counted = {}
        others = {id(p) for p in elsewhere}
        for p in self._parameters:
            if id(p) not in others:
                self._counted.setdefault(_among(p), []).append(p)

    def clip(self) -> None:
        """Every process has to call it."""
        if not self._clip:
            return
        optimizers.settle(self._parameters)  # of which the optimizer holds some alone
        with torch.no_grad():
            grads = _gradients(self._parameters)
            if self._clip.value is not None:
                for g in grads:
                    g.clamp_(-self._clip.value, self._clip.value)
            if self._clip.norm is not None:
                self._norm = self._total()
                share = self._clip.share(self._norm)
                for g in grads:
                    g.mul_(share)

    def norm(self) -> float:
        """Of the last step's gradients, before they were clipped by it; the same on every process."""
        if self._clip.norm is None:
            raise RunError("the training clips no gradients by their norm: distribute(…, clip_norm=1.0), which may be inf to have the norm alone")
        if self._norm is None:
            raise RunError("no step was run")
        return float(self._norm.item())

    def _total(self) -> torch.Tensor:
        """The norm of the norms of what processes have of the gradients. Processes that have
        the same gradients gather the same numbers in the same order, so that they agree to the bit."""
        norms = [torch.zeros((), dtype=torch.float64, device=self._mesh.device)]
        for among, parameters in self._counted.items():
            norm = torch.nn.utils.get_total_norm(_gradients(parameters), self._clip.type).to(norms[0])
            if among is not None:
                mesh, dimensions = among
                for d in dimensions:
                    norm = self._over(norm, mesh.get_group(d))
            norms.append(norm)
        total = self._clip.norm_of(torch.stack(norms))
        return self._over(total, self._mesh.stages.get_group()) if self._mesh.stages.size() > 1 else total

    def _over(self, norm: torch.Tensor, group: dist.ProcessGroup) -> torch.Tensor:
        """The norm of the processes' norms."""
        each = [torch.empty_like(norm) for _ in range(group.size())]
        dist.all_gather(each, norm, group=group)
        return self._clip.norm_of(torch.stack(each))


def _among(p: torch.Tensor) -> Among | None:
    """The processes that share p out; None where each has all of it."""
    if not isinstance(p, DTensor):
        return None
    mesh = p.device_mesh
    dimensions = tuple(d for d, x in enumerate(p.placements) if mesh.size(d) > 1 and not x.is_replicate())
    return (mesh, dimensions) if dimensions else None


def _gradients(parameters: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """What this process has of them: memory of the gradients themselves."""
    here = (p.grad.to_local() if isinstance(p.grad, DTensor) else p.grad for p in parameters)
    return [g for g in here if g is not None and g.numel()]
