"""The cross entropy of tokens that replicas share out: torch's own, of a replica's logits alone, for
DTensor gathers those of all."""

from __future__ import annotations

from typing import Any, Sequence

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Shard
from torch.distributed.tensor.placement_types import Placement

CLASSES = 1  # the dimension of classes in logits [N, C, ...]


def of_tokens(mesh: DeviceMesh, input: Any, target: Any, weight: Any = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None, reduction: str = "mean", label_smoothing: float = 0.0) -> torch.Tensor:
    """F.cross_entropy; of logits [N, C, ...] cut by another dimension than classes a sum over replicas."""
    rest = weight, size_average, ignore_index, reduce, reduction, label_smoothing
    of = _targets(input.placements) if isinstance(input, DTensor) and input.dim() > 1 else None
    if of is None or not isinstance(target, DTensor) or target.is_floating_point() or (weight, size_average, reduce) != (None,) * 3 or reduction not in ("mean", "sum"):
        return F.cross_entropy(input, target, *rest)
    mine = target.redistribute(placements=of).to_local()
    made = F.cross_entropy(input.to_local(), mine, ignore_index=ignore_index, reduction="sum", label_smoothing=label_smoothing)
    if reduction == "mean":
        count = (mine != ignore_index).sum()
        dist.all_reduce(count, group=mesh.get_group())
        made = made / count
    return DTensor.from_local(made, mesh, [Partial()], run_check=False)


def _targets(logits: Sequence[Placement]) -> Sequence[Placement] | None:
    """How targets [N, ...] are cut where logits are; None where logits are not, or by classes."""
    (of,) = logits
    dim = getattr(of, "dim", CLASSES)
    if dim == CLASSES:
        return None
    return [of] if dim < CLASSES else [Shard(dim - 1)]
