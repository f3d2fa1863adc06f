"""Tokens of a micro-batch shared out among neighbouring replicas (context parallelism).

What is of tokens is a DTensor of these replicas, cut by tokens, and the model's own code runs on it
and sees whole shapes: positions, masks and shifted labels are as they were. What the code makes
itself all replicas have whole. Attention, the cross entropy and experts are computed here, on a
replica's own tokens; what DTensor does with them gathers more."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, Iterator, Mapping, Sequence

import torch
import torch.nn.functional as F
import torch.utils._pytree as pytree
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.overrides import TorchFunctionMode

from .. import samples
from . import cross_entropy, losses, micro, tokens_attention
from .errors import StrategyError
from .experts import chosen, modules
from .strategy import Strategy
from .tensor import TOKENS


def cut(module: nn.Module, s: Strategy, mesh: DeviceMesh) -> None:
    """Has experts that are called with rows run on a replica's own."""
    for m in filter(chosen, modules(module, s.experts)):
        m.forward = functools.partial(_own_rows, m, mesh)


def shared(batch: Any, mesh: DeviceMesh) -> Any:
    """batch, which is the same on all replicas of mesh, with each its tokens of numbers [samples,
    tokens] and of floats [samples, tokens, width]."""
    n, ranks, cut = samples.count(batch), mesh.size(), False

    def leaf(x: Any) -> Any:
        nonlocal cut
        if not isinstance(x, torch.Tensor) or x.dim() != (3 if x.is_floating_point() else 2) or x.shape[0] != n or x.shape[TOKENS] % ranks or x.dtype == torch.bool:
            return x
        cut = True
        mine = x.chunk(ranks, TOKENS)[mesh.get_local_rank()].contiguous()
        return DTensor.from_local(mine, mesh, [Shard(TOKENS)], run_check=False)

    made = micro.each(batch, leaf)
    if not cut:
        raise StrategyError(f"the batch has no tensor of tokens for {ranks} replicas to share out: want numbers [samples, tokens] or floats [samples, tokens, width] of a multiple of {ranks} tokens")
    return made


def whole(value: torch.Tensor) -> torch.Tensor:
    """value on all replicas, with its gradient."""
    return value.full_tensor() if isinstance(value, DTensor) else value


@contextlib.contextmanager
def passes(s: Strategy, mesh: DeviceMesh) -> Iterator[None]:
    """Around forward and backward passes."""
    with _Calls(mesh, again=s.recompute == "nothing"):
        yield


class _Calls(TorchFunctionMode):
    """Calls of torch's functions by the model's code: tensors beside those of tokens are taken for
    whole ones."""

    def __init__(self, mesh: DeviceMesh, again: bool):
        """again: keys and values are gathered again for gradients, not kept."""
        super().__init__()
        self._mesh = mesh
        self._own: dict[Callable[..., Any], Callable[..., Any]] = {
            F.scaled_dot_product_attention: functools.partial(tokens_attention.attention, mesh, again),
            F.cross_entropy: functools.partial(cross_entropy.of_tokens, mesh),
            **losses.of_functions(),
        }

    def __torch_function__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        kinds = {isinstance(x, DTensor) for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)}
        if kinds == {False, True}:
            args, kwargs = pytree.tree_map_only(torch.Tensor, self._beside, (args, kwargs))
        own = self._own.get(func) if True in kinds else None
        return func(*args, **kwargs) if own is None else own(*args, **kwargs)

    def _beside(self, x: torch.Tensor) -> torch.Tensor:
        return x if isinstance(x, DTensor) else _Whole.apply(x, self._mesh)


class _Whole(torch.autograd.Function):
    """A tensor that all replicas have, as a DTensor. Its gradient is such that the replicas' mean is the
    gradient of all tokens: replicas are reduced by their mean."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, mesh: DeviceMesh) -> torch.Tensor:
        return DTensor.from_local(x, mesh, [Replicate()], run_check=False)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (g,) = grads
        if not isinstance(g, DTensor):
            return g, None
        if g.placements[0].is_partial("sum"):
            return g.to_local() * g.device_mesh.size(), None
        return g.redistribute(placements=[Replicate()]).to_local(), None


class _Times(torch.autograd.Function):
    """A parameter that replicas use for their own tokens alone, with a gradient as _Whole has it."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, ranks: int) -> torch.Tensor:
        ctx.ranks = ranks
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0] * ctx.ranks, None


def _own_rows(module: nn.Module, mesh: DeviceMesh, *args: Any, **kwargs: Any) -> Any:
    """Runs module, the experts of a mixture, on the rows that this replica has of all its inputs."""
    first = next((x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, DTensor)), None)
    if first is None or getattr(first.placements[0], "dim", None) != 0:  # no replica has rows of its own
        return type(module).forward(module, *args, **kwargs)
    rows = first.placements
    args, kwargs = pytree.tree_map_only(DTensor, lambda x: x.redistribute(placements=rows).to_local(), (args, kwargs))
    there = [(m, dict(m._parameters)) for m in module.modules()]
    for m, own in there:
        m._parameters.update({k: p if p is None else _Times.apply(p, mesh.size()) for k, p in own.items()})
    try:
        made = type(module).forward(module, *args, **kwargs)
    finally:
        for m, own in there:
            m._parameters.update(own)
    return pytree.tree_map_only(torch.Tensor, lambda x: DTensor.from_local(x, mesh, rows, run_check=False), made)
