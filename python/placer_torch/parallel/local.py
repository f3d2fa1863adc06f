"""DTensors of what each process has of them, and back.

torch's from_local and to_local have such gradients too, but where a gradient is added up among
processes no second ones: of a loss that has gradients in it the wrong ones, without a word."""

from __future__ import annotations

from typing import Any, Sequence, cast

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.placement_types import Placement

Layout = Sequence[Placement]


def of_local(x: torch.Tensor, mesh: DeviceMesh, layout: Layout, shape: torch.Size | None = None) -> DTensor:
    """The DTensor of which this process has x; its gradient has the same layout. shape: the whole's, where
    the layout does not divide it evenly."""
    return cast(DTensor, _Of.apply(x, mesh, tuple(layout), shape))


def to_local(x: DTensor, layout: Layout) -> torch.Tensor:
    """What this process has of x in a layout, which its gradient has as well."""
    return cast(torch.Tensor, _To.apply(x.redistribute(placements=layout)))


class _Of(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, mesh: DeviceMesh, layout: Layout, shape: torch.Size | None) -> DTensor:
        ctx.layout = layout
        if shape is None or not _uneven(shape, mesh, layout):
            return DTensor.from_local(x, mesh, layout, run_check=False)
        return DTensor.from_local(x.contiguous(), mesh, layout, run_check=False, shape=shape, stride=_contiguous(shape))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return to_local(grads[0], ctx.layout), None, None, None


class _To(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: DTensor) -> torch.Tensor:
        ctx.mesh, ctx.layout, ctx.shape = x.device_mesh, x.placements, x.shape
        mine = x.to_local()
        return mine.view_as(mine)  # not the object that x holds

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return of_local(grads[0], ctx.mesh, ctx.layout, ctx.shape)


def _uneven(shape: torch.Size, mesh: DeviceMesh, layout: Layout) -> bool:
    return any(shape[p.dim] % mesh.size(k) for k, p in enumerate(layout) if isinstance(p, Shard))


def _contiguous(shape: torch.Size) -> tuple[int, ...]:
    with torch.device("meta"):
        return torch.empty(shape).stride()
