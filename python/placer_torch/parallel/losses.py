"""Losses that are means over elements which processes share out. Their values are right as DTensor
computes them, but their gradients are divided by the elements of one process, not of all, and so
too large by the number of processes."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Mapping, Sequence

import torch
import torch.nn.functional as F
import torch.utils._pytree as pytree
from torch.distributed.tensor import DTensor
from torch.overrides import TorchFunctionMode

Function = Callable[..., Any]

_FUNCTIONS: tuple[Function, ...] = (F.mse_loss, F.smooth_l1_loss, F.huber_loss, F.binary_cross_entropy, F.soft_margin_loss)
_OPS: tuple[Function, ...] = tuple(getattr(torch.ops.aten, f.__name__).default for f in _FUNCTIONS)  # as a traced model calls them
_MEAN, _SUM = 1, 2  # reductions of the ops


def of_functions() -> dict[Function, Function]:
    """What computes each of these functions of torch's, with the gradients of a mean over all elements."""
    functions: dict[Function, Function] = {f: _function(f) for f in _FUNCTIONS}
    return functions | {op: _op(op) for op in _OPS}


def _function(f: Function) -> Function:
    signature = inspect.signature(f)

    def mean(*args: Any, **kwargs: Any) -> Any:
        of = signature.bind(*args, **kwargs)
        of.apply_defaults()
        given = of.arguments
        old = given.get("size_average"), given.get("reduce")
        mean = given["reduction"] == "mean" if old == (None, None) else False not in old
        if not mean or given.get("weight") is not None and f is not F.binary_cross_entropy:  # which torch computes by other ops
            return f(*args, **kwargs)
        given |= {"reduction": "sum"} | {k: None for k in ("size_average", "reduce") if k in given}
        return f(*of.args, **of.kwargs) / _elements(given["input"], given["target"])

    return mean


def _op(op: Any) -> Function:
    at = [a.name for a in op._schema.arguments].index("reduction")

    def mean(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("reduction", args[at] if len(args) > at else _MEAN) != _MEAN:
            return op(*args, **kwargs)
        if len(args) > at:
            args = (*args[:at], _SUM, *args[at + 1 :])
        else:
            kwargs = {**kwargs, "reduction": _SUM}
        return op(*args, **kwargs) / _elements(args[0], args[1])

    return mean


def _elements(input: torch.Tensor, target: torch.Tensor) -> int:
    return torch.broadcast_shapes(input.shape, target.shape).numel()


class Calls(TorchFunctionMode):
    """Calls of these functions with DTensors."""

    def __init__(self) -> None:
        super().__init__()
        self._own = of_functions()

    def __torch_function__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        own = self._own.get(func)
        if own is not None and any(isinstance(x, DTensor) for x in pytree.tree_leaves((args, kwargs))):
            func = own
        return func(*args, **(kwargs or {}))
