"""Around passes of a model whose code runs on DTensors."""

from __future__ import annotations

import contextlib
from typing import Iterator

import torch
from torch import nn

from ..errors import PlacerTorchError
from ..settings import without_fast_path
from ..where import cause, first_line, where
from . import share, tensor, tokens
from .errors import StrategyError
from .mesh import Mesh
from .names import plain
from .strategy import Strategy


@contextlib.contextmanager
def passes(s: Strategy, model: nn.Module, mesh: Mesh) -> Iterator[None]:
    """Around forward and backward passes. Raises StrategyError with the module whose code does not
    work on DTensors."""
    with contextlib.ExitStack() as stack:
        if s.tensor > 1 or mesh.tokens is not None:
            stack.enter_context(_on_dtensors(s, model))
            stack.enter_context(without_fast_path())  # whose kernels take no DTensors
        if s.tensor > 1:
            stack.enter_context(tensor.passes(s, mesh.device))
        if mesh.tokens is not None:
            stack.enter_context(tokens.passes(s, mesh.tokens))
        stack.enter_context(share.passes(s, model))
        yield


@contextlib.contextmanager
def _on_dtensors(s: Strategy, model: nn.Module) -> Iterator[None]:
    try:
        yield
    except Exception as e:
        first = cause(e)
        if isinstance(first, (torch.OutOfMemoryError, PlacerTorchError)):
            raise first
        what = f"products cut in {s.tensor}" if s.tensor > 1 else f"tokens that {s.context} replicas share out"
        raise StrategyError(f"{s.strategy}: {running(model, first)}does not run on {what}: {first_line(first)}") from e


def running(model: nn.Module, e: BaseException) -> str:
    """The innermost module of model that ran where e was raised, with its line of code."""
    names = {id(m): k for k, m in model.named_modules()}
    found, trace = "", e.__traceback__
    while trace is not None:
        of = trace.tb_frame.f_locals.get("self")
        if isinstance(of, nn.Module) and names.get(id(of)):
            found = plain(names[id(of)])
        trace = trace.tb_next
    at = where(e)
    return f"module {found or 'of the model'}{f' ({at})' if at else ''} "
