"""What a model has beside parameters and buffers: attributes of its modules and of its loss, and what these hold."""

from __future__ import annotations

import argparse
import collections
import enum
import functools
import numbers
import operator
import random
import sys
import types
import weakref
from typing import Any, Callable, Collection, Iterator, NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor

# What torch.nn.Module itself keeps in each module.
_OWN = frozenset(vars(torch.nn.Module()))
_DEPTH = 6  # of containers within each other; what is nested deeper is a leaf
_MOST = 10_000  # entries of a container; of a larger one (a vocabulary) none is a leaf
_PLAIN = (numbers.Number, str, bytes, type(None), enum.Enum, torch.dtype, torch.device)
_OPEN = (types.SimpleNamespace, argparse.Namespace, collections.UserDict, collections.UserList)
_SHUT = frozenset({*sys.stdlib_module_names, "torch"})  # whose objects are leaves, but for those of _OPEN and modules


class Leaf(NamedTuple):
    """What no container holds further: `put` puts another in its place."""

    path: str
    value: Any
    put: Callable[[Any], None]


class Attributes:
    """Modules with their attributes, dicts, lists, tuples, sets, deques and objects (a
    dataclass's) in them; a loss that is an object, or a method of one, too. They are what they
    were when this was made, once it puts them back."""

    def __init__(self, model: torch.nn.Module, loss: Any = None):
        self._modules, self._loss = list(model.named_modules()), getattr(loss, "__self__", loss)
        self._buffers = [{k for k, b in m._buffers.items() if b is not None} for _, m in self._modules]
        found: dict[int, Any] = {}
        list(self.leaves(found))
        own = [v for _, m in self._modules for k, v in vars(m).items() if k in _OWN and isinstance(v, (dict, set))]
        self._was = [(v, _content(v)) for v in (*(m for _, m in self._modules), *own, *found.values())]

    def leaves(self, found: dict[int, Any] | None = None) -> Iterator[Leaf]:
        """All of them, and by id the containers on the way, each of which is entered once.
        Buffers from before are none: they are in the step."""
        found = {} if found is None else found
        seen = {id(m) for _, m in self._modules}
        for (path, m), buffers in zip(self._modules, self._buffers):
            for of, skipped in ((vars(m), _OWN), (m._buffers, buffers)):
                for k, v in list(of.items()):
                    if k not in skipped:
                        yield from _walk(f"{path}.{k}" if path else k, v, functools.partial(operator.setitem, of, k), found, seen)
        yield from _walk("loss", self._loss, lambda _: None, found, seen)

    def put_back(self) -> None:
        for v, was in self._was:
            _restore(v, was)

    def state(self, traced: Collection[int]) -> dict[str, Any]:
        """What can be compared of each leaf, by path: of a tensor of these ids that it is one."""
        return {x.path: torch.Tensor if id(x.value) in traced else _key(x.value) for x in self.leaves()}

    def traced(self, but: Collection[int] = ()) -> dict[str, torch.Tensor]:
        """By path the tensors that a trace has left, without those of these ids. What it
        computes of constants alone are fake ones."""
        return {x.path: x.value for x in self.leaves() if isinstance(x.value, (FunctionalTensor, FakeTensor)) and id(x.value) not in but}

    def generators(self) -> dict[str, Any]:
        """By path what draws random numbers, of Python's or NumPy's."""
        numpy = getattr(sys.modules.get("numpy"), "random", None)
        kinds = (random.Random, *([numpy.Generator, numpy.RandomState] if numpy is not None else []))
        return {x.path: x.value for x in self.leaves() if isinstance(x.value, kinds)}


def _walk(path: str, v: Any, put: Callable[[Any], None], found: dict[int, Any], seen: set[int], depth: int = _DEPTH) -> Iterator[Leaf]:
    inner = _inner(v, put) if depth and id(v) not in seen else None
    if inner is not None or isinstance(v, (dict, list, set, collections.deque)):
        seen.add(id(v))
        found[id(v)] = v
        if isinstance(v, torch.nn.Module):
            found.update((id(x), x) for k, x in vars(v).items() if k in _OWN and isinstance(x, dict))
    if inner is None:
        yield Leaf(path, v, put)
        return
    for name, x, put_x in inner:
        yield from _walk(path + name, x, put_x, found, seen, depth - 1)


def _inner(v: Any, put: Callable[[Any], None]) -> list[tuple[str, Any, Callable[[Any], None]]] | None:
    """Name, value and setter of what a container holds, None of what is none."""
    if isinstance(v, (dict, list, tuple, collections.deque)) and len(v) > _MOST:
        return None
    if isinstance(v, (dict, list, collections.deque)):
        items = v.items() if isinstance(v, dict) else enumerate(v)
        return [(f"[{k!r}]" if isinstance(k, _PLAIN) else f"[{i}]", x, functools.partial(operator.setitem, v, k)) for i, (k, x) in enumerate(items)]
    if isinstance(v, tuple):
        made = list(v)

        def change(i: int, x: Any) -> None:
            made[i] = x
            put(type(v)(*made) if hasattr(v, "_fields") else type(v)(made))

        return [(f"[{i}]", x, functools.partial(change, i)) for i, x in enumerate(v)]
    if isinstance(v, torch.nn.Module):  # none of the model's
        of = [{k: x for k, x in vars(v).items() if k not in _OWN}, v._buffers, v._parameters, v._modules]
        return [(f".{k}", x, functools.partial(operator.setitem, held if i else vars(v), k)) for i, held in enumerate(of) for k, x in list(held.items())]
    return [(f".{k}", x, functools.partial(_set, v, k)) for k, x in _fields(v).items()] or None


def _fields(v: Any) -> dict[str, Any]:
    """The attributes of an object of the user's; none of all else."""
    root = str(getattr(type(v), "__module__", "")).partition(".")[0]
    if isinstance(v, (*_PLAIN, type, types.ModuleType, torch.Tensor, random.Random)) or root in _SHUT and not isinstance(v, _OPEN):
        return {}
    slots = (k for c in type(v).__mro__ for k in _names(vars(c).get("__slots__", ())))
    return dict(getattr(v, "__dict__", {})) | {k: getattr(v, k) for k in slots if k not in ("__dict__", "__weakref__") and hasattr(v, k)}


def _names(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _set(v: Any, k: str, x: Any) -> None:
    """v.k = x, whatever v's class makes of it."""
    if k in getattr(v, "__dict__", ()):
        v.__dict__[k] = x
    else:
        object.__setattr__(v, k, x)


def _content(v: Any) -> Any:
    if isinstance(v, (dict, list, set, collections.deque)):
        return dict(v) if isinstance(v, dict) else set(v) if isinstance(v, set) else list(v)
    return dict(vars(v)) if isinstance(v, torch.nn.Module) else () if isinstance(v, tuple) else _fields(v)


def _restore(v: Any, was: Any) -> None:
    now = _content(v)
    if now.__class__ is was.__class__ and len(now) == len(was) and all(x is y for x, y in zip(_flat(now), _flat(was))):
        return
    if isinstance(v, dict):
        of: Any = collections.OrderedDict if isinstance(v, collections.OrderedDict) else dict
        of.clear(v)
        for k, x in was.items():
            of.__setitem__(v, k, x)
    elif isinstance(v, (list, set, collections.deque)):
        v.clear()
        (v.update if isinstance(v, set) else v.extend)(was)
    elif isinstance(v, torch.nn.Module):
        vars(v).clear()
        vars(v).update(was)
    else:
        for k in now.keys() - was.keys():
            object.__delattr__(v, k)
        for k, x in was.items():
            _set(v, k, x)


def _flat(content: Any) -> Iterator[Any]:
    if isinstance(content, dict):
        yield from content.keys()
        yield from content.values()
    else:
        yield from content


def _key(v: Any) -> Any:
    if isinstance(v, _PLAIN):
        return type(v), repr(v)
    if isinstance(v, set):
        return set, frozenset(v)
    return weakref.ref if isinstance(v, weakref.ref) else id(v)
