"""Attributes of a model's modules that are neither parameters nor buffers, and what a traced step leaves in them."""

from __future__ import annotations

import collections
import copy
from typing import Any, Callable, Collection, Iterator

import torch
import torch.fx

from . import kinds

# What torch.nn.Module itself keeps in each module.
_OWN = frozenset(vars(torch.nn.Module()))
_NUMBERS = (int, float, bool)


class Attributes:
    """They are what they were when this was made, once it puts them back. Contents of
    dicts and lists are; those of other objects are not."""

    def __init__(self, model: torch.nn.Module):
        self._modules = list(model.named_modules())
        self._was = [dict(vars(m)) for _, m in self._modules]
        self._contents = [{k: copy.copy(v) for k, v in was.items() if type(v) in (dict, collections.OrderedDict, list)} for was in self._was]
        self._leaves = [dict(_leaves(m)) for _, m in self._modules]

    def put_back(self) -> None:
        for (_, m), was, contents in zip(self._modules, self._was, self._contents):
            vars(m).clear()
            vars(m).update(was)
            for k, v in contents.items():
                if isinstance(v, list):
                    was[k][:] = v
                else:
                    was[k].clear()
                    was[k].update(v)

    def tensors(self, but: Collection[int]) -> dict[str, torch.Tensor]:
        """By path those that have come into attributes, without the ones of these ids."""
        return {path: x for path, x, _ in self._changed() if isinstance(x, torch.Tensor) and id(x) not in but}

    def numbers(self) -> list[str]:
        """The paths of those that differ."""
        return [path for path, x, before in self._changed() if type(x) in _NUMBERS and (before is None or type(before) in _NUMBERS) and x != before]

    def replace(self, new: dict[int, torch.Tensor]) -> None:
        """Puts new tensors, by the id of the old, where the old are."""
        change = lambda x: new.get(id(x), x)  # noqa: E731
        for _, m in self._modules:
            for k, v in list(vars(m).items()):
                if k not in _OWN and any(id(x) in new for _, x in _walk("", v)):
                    vars(m)[k] = _map(v, change)
            for k, b in list(m._buffers.items()):
                m._buffers[k] = change(b)

    def _changed(self) -> Iterator[tuple[str, Any, Any]]:
        """Path, value and value before."""
        for (path, m), before in zip(self._modules, self._leaves):
            for k, x in _leaves(m):
                was = before.get(k)
                if x is not was and not (k in m._buffers and was is not None):  # a buffer is in the step
                    yield (f"{path}.{k}" if path else k), x, was


def _leaves(m: torch.nn.Module) -> Iterator[tuple[str, Any]]:
    for k, v in vars(m).items():
        if k not in _OWN:
            yield from _walk(k, v)
    yield from m._buffers.items()


def _walk(path: str, v: Any, depth: int = 6) -> Iterator[tuple[str, Any]]:
    """The leaves of dicts, lists and tuples; what is nested deeper is a leaf."""
    if depth and isinstance(v, dict):
        for k, x in v.items():
            yield from _walk(f"{path}[{k!r}]", x, depth - 1)
    elif depth and isinstance(v, (list, tuple)):
        for i, x in enumerate(v):
            yield from _walk(f"{path}[{i}]", x, depth - 1)
    else:
        yield path, v


def _map(v: Any, change: Callable[[Any], Any], depth: int = 6) -> Any:
    """v with its leaves changed."""
    if depth and isinstance(v, dict):
        made = copy.copy(v)
        made.update({k: _map(x, change, depth - 1) for k, x in v.items()})
        return made
    if depth and isinstance(v, (list, tuple)):
        each = [_map(x, change, depth - 1) for x in v]
        return type(v)(*each) if hasattr(v, "_fields") else type(v)(each)
    return change(v)


def depends(n: torch.fx.Node) -> bool:
    """Whether n's value depends on what the step is given, or on what it draws: not on shapes alone."""
    seen: set[torch.fx.Node] = set()
    left = [n]
    while left:
        n = left.pop()
        if n in seen:
            continue
        seen.add(n)
        if n.op == "placeholder":
            return True
        if isinstance(n.target, torch._ops.OpOverload):
            if kinds.is_random(n.target):
                return True
            if kinds.base(str(n.target)).endswith("_like") or kinds.base(str(n.target)).startswith("new_"):
                continue
        left += n.all_input_nodes
    return False


def calls(graph: torch.fx.Graph) -> list[str]:
    """The graph's ops with those of their arguments that are no tensors."""

    def plain(x: Any) -> Any:
        return "" if isinstance(x, torch.fx.Node) else x

    return [f"{n.target} {torch.fx.map_arg(n.args, plain)} {torch.fx.map_arg(n.kwargs, plain)}" for n in graph.nodes if n.op == "call_function"]
