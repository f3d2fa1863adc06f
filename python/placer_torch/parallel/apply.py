"""One module, the whole model or a stage of it, by a strategy."""

from __future__ import annotations

import contextlib
import functools

from torch import nn

from . import experts, recompute, share, tensor, tokens
from .mesh import Mesh
from .strategy import Strategy


def apply(module: nn.Module, s: Strategy, mesh: Mesh) -> nn.Module:
    """module with its products cut, its experts shared out, its layers computed again and its parameters shared out,
    as s says. Paths that module does not have are another stage's. Returns module, or what
    wraps it. Its parameters are others afterwards."""
    if s.tensor > 1:
        tensor.cut(module, s, mesh.tensor)
    if s.expert_ranks > 1:
        experts.cut(module, s.experts, mesh.experts)
    if mesh.tokens is not None:
        tokens.cut(module, s, mesh.tokens)
    if s.recompute == "layers":
        recompute.wrap(module, s, contextlib.nullcontext if mesh.tokens is None else functools.partial(tokens.passes, s, mesh.tokens))
    if s.data > 1:
        module = share.share(module, s, mesh)
    return module
