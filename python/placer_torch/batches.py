"""A batch as leaves by path, so that a new one is bound to a captured step by names and not by order."""

from __future__ import annotations

import collections
import copy
from collections.abc import Mapping
from typing import Any, Iterator

import torch.utils._pytree as pytree


def leaves(batch: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves with their paths (`['ids']`, `[1]`; "" is the batch itself): of dicts and
    other mappings by key, of tuples, lists and classes that pytree knows by position."""
    if isinstance(batch, Mapping):
        for k, v in batch.items():
            yield from leaves(v, f"{path}[{k!r}]")
        return
    children, _ = _children(batch)
    if _is_leaf(batch, children):
        yield path, batch
        return
    for k, v in enumerate(children):
        yield from leaves(v, f"{path}[{k}]")


def rebuild(batch: Any, values: Iterator[Any]) -> Any:
    """batch with its leaves replaced by values, in the order of `leaves`. A mapping that
    is neither a dict nor a UserDict becomes a dict."""
    if isinstance(batch, Mapping):
        made: Any = copy.copy(batch) if isinstance(batch, (dict, collections.UserDict)) else {}
        for k, v in batch.items():
            made[k] = rebuild(v, values)
        return made
    children, spec = _children(batch)
    if _is_leaf(batch, children):
        return next(values)
    return pytree.tree_unflatten([rebuild(v, values) for v in children], spec)


def _children(x: Any) -> tuple[list[Any], pytree.TreeSpec]:
    """One level of x; x itself where pytree does not know its class."""
    return pytree.tree_flatten(x, is_leaf=lambda y: y is not x)


def _is_leaf(x: Any, children: list[Any]) -> bool:
    return len(children) == 1 and children[0] is x
