"""Collectives that a process takes part in, as they are called."""

from __future__ import annotations

import collections
from typing import Any

import torch
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode

KINDS = {
    "all_reduce": "all_reduce",
    "allreduce_": "all_reduce",
    "all_gather_into_tensor": "all_gather",
    "_allgather_base_": "all_gather",
    "reduce_scatter_tensor": "reduce_scatter",
    "_reduce_scatter_base_": "reduce_scatter",
    "alltoall_base_": "all_to_all",
}


class Collectives(TorchDispatchMode):
    """Counts calls by kind, and the bytes of their whole tensors: what is reduced, scattered or
    exchanged, and what is gathered."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: collections.Counter[str] = collections.Counter()
        self.bytes: collections.Counter[str] = collections.Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(issubclass(t, DTensor) for t in types):
            return NotImplemented  # its local ops come here
        result = func(*args, **(kwargs or {}))
        kind = KINDS.get(func._opname) if func.namespace in ("c10d", "_c10d_functional") else None
        if kind is not None:
            whole = _first(_whole(kind, func.namespace, args, result))
            self.calls[kind] += 1
            self.bytes[kind] += whole.numel() * whole.element_size()
        return result


def _whole(kind: str, namespace: str, args: Any, result: Any) -> Any:
    if kind == "all_gather":
        return result if namespace == "_c10d_functional" else args[0]
    if kind in ("reduce_scatter", "all_to_all") and namespace == "c10d":
        return args[1]  # behind the output
    return args[0]


def _first(x: Any) -> torch.Tensor:
    return x if isinstance(x, torch.Tensor) else _first(x[0])
