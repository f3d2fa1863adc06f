"""One module, the whole model or a stage of it, by a strategy."""

from __future__ import annotations

import contextlib
import functools

from torch import nn

from . import experts, recompute, tensor, tokens
from .mesh import Mesh
from .strategy import Strategy


def apply(module: nn.Module, s: Strategy, mesh: Mesh) -> None:
    """Cuts the products of module, shares its experts out and has its layers computed again, as s
    says; what replicas share out is done behind this (share). Paths that module does not have are
    another stage's. Its parameters are others afterwards."""
    if s.tensor > 1:
        tensor.cut(module, s, mesh.tensor)
    if s.expert_ranks > 1:
        experts.cut(module, s.experts, mesh.experts)
    if mesh.tokens is not None:
        tokens.cut(module, s, mesh.tokens)
    if s.recompute == "layers":
        recompute.wrap(module, s, contextlib.nullcontext if mesh.tokens is None else functools.partial(tokens.passes, s, mesh.tokens))
