"""Layers whose activations are computed again before their gradients."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, ContextManager, Iterator

import torch
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

from .strategy import Strategy


def wrap(module: nn.Module, s: Strategy, second: Callable[[], ContextManager[None]] = contextlib.nullcontext) -> None:
    """Wraps each module of s.layers into torch's checkpoint_wrapper. second: what is around a layer's
    second pass, as it is around all of the first."""
    there = dict(module.named_modules())
    for path in (p for layer in s.layers for p in layer if p in there):
        parent, _, name = path.rpartition(".")
        layer = there[path]
        setattr(there[parent], name, checkpoint_wrapper(layer, context_fn=_Once(layer, second).contexts))


class _Each:
    """A context that may be entered again when it was left."""

    def __init__(self, make: Callable[[], ContextManager[None]]):
        self._make, self._stack = make, contextlib.ExitStack()

    def __enter__(self) -> None:
        self._stack.enter_context(self._make())

    def __exit__(self, *of: Any) -> None:
        self._stack.__exit__(*of)


class _Once:
    """Statistics that a layer keeps in buffers, as batch norm's, are of its first pass: what is
    computed again begins with those from before it and leaves none."""

    def __init__(self, layer: nn.Module, second: Callable[[], ContextManager[None]]):
        self._layer, self._second = layer, second

    def contexts(self) -> tuple[ContextManager[None], ContextManager[None]]:
        """Around the first pass, and around the second, which gradients of gradients repeat."""
        before = [b.detach().clone() for b in self._buffers()]
        return contextlib.nullcontext(), _Each(lambda: self._with(before))

    def _buffers(self) -> list[torch.Tensor]:
        return [b for b in self._layer.buffers() if b.is_floating_point() or not b.dim()]

    @contextlib.contextmanager
    def _with(self, before: list[torch.Tensor]) -> Iterator[None]:
        buffers = self._buffers()
        now = [b.detach().clone() for b in buffers]
        self._set(buffers, before)
        try:
            with self._second():
                yield
        finally:
            self._set(buffers, now)

    def _set(self, buffers: list[torch.Tensor], values: list[torch.Tensor]) -> None:
        for b, v in zip(buffers, values, strict=True):
            b.data.copy_(v)  # of which autograd, that keeps statistics, does not know
