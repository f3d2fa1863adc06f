"""Experts of mixtures in a pipeline: how many rows each gets depends on values, so a trace has a module
of experts as one op, in whose place a stage runs the module."""

from __future__ import annotations

import contextlib
import copy
import functools
from typing import Any, Iterator, List, Mapping, Sequence, cast

import torch
from torch import fx, nn
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing

from . import experts


@torch.library.custom_op("placer_torch::experts", mutates_args=())
def _experts(given: List[torch.Tensor], weights: List[torch.Tensor], path: str, shape: List[int], dtype: torch.dtype) -> torch.Tensor:
    raise NotImplementedError(f"experts of {path} run in a stage")


@_experts.register_fake
def _(given: List[torch.Tensor], weights: List[torch.Tensor], path: str, shape: List[int], dtype: torch.dtype) -> torch.Tensor:
    return given[0].new_empty(shape, dtype=dtype)


@contextlib.contextmanager
def opaque(model: nn.Module, paths: Sequence[str]) -> Iterator[None]:
    """Modules of model at paths are one op each while it is entered."""
    there = dict(model.named_modules())
    with contextlib.ExitStack() as undo:
        for path in paths:
            m = there[path]
            was = vars(m).get("forward")
            m.forward = functools.partial(_one_op, m, path)
            undo.callback(_restore, m, was)
        yield


def _restore(m: nn.Module, was: Any) -> None:
    if was is None:
        del m.forward
    else:
        m.forward = was


def _one_op(m: nn.Module, path: str, *args: Any, **kwargs: Any) -> torch.Tensor:
    if experts.chosen(m):
        given = experts.given(m, path, args, kwargs)
        shape, dtype = given[0].shape, given[0].dtype
    else:
        given = experts.given_block(m, path, args, kwargs)
        with disable_proxy_modes_tracing(), torch.no_grad():
            like = type(m).forward(m, *given)
        shape, dtype = like.shape, like.dtype
    return torch.ops.placer_torch.experts(given, list(m.parameters()), path, list(shape), dtype)


def stands(n: fx.Node) -> bool:
    """Whether n stands for a module of experts: with what it is called, its parameters, its path."""
    return n.target is torch.ops.placer_torch.experts.default


def module(n: fx.Node, experts: Mapping[str, nn.Module], of: Mapping[str, torch.Tensor]) -> nn.Module:
    """A copy of the module that n stands for, with the tensors of these names for parameters."""
    m, weights = experts[str(n.args[2])], cast("Sequence[fx.Node]", n.args[1])
    return copy.deepcopy(m, {id(p): of[str(w.target)] for p, w in zip(m.parameters(), weights, strict=True)})
