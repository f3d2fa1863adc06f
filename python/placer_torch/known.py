"""Numbers that a model's code takes out of tensors whose values are known while it is traced."""

from __future__ import annotations

from typing import Any, Sequence

import torch
import torch.utils._pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

from . import kinds

# Ops that return a number, or a truth, instead of a tensor.
_NUMBERS = {"aten::_local_scalar_dense", "aten::equal", "aten::is_nonzero"}

# Ops of which the shape, not the values, of what they read is in what they make, by that number:
# those with None are given it behind (`full_like(x, number)`, `new_full(x, shape, number)`).
_FILLED: dict[str, int | None] = {"aten::zeros_like": 0, "aten::ones_like": 1, "aten::new_zeros": 0, "aten::new_ones": 1, "aten::full_like": None, "aten::new_full": None}

_NONE: frozenset[str] = frozenset()


class Known:
    """The ops so far that read known tensors alone: buffers, tensors that the code holds, and
    what is made of these, of sizes and of numbers. Nothing is computed until the code asks for
    a number (`bool(mask.all())`, as torch's TransformerEncoder does to see whether a mask is
    causal); then these ops run, on copies.

    Where an op changes a known tensor by something that is not, what lies in the same memory is
    known no more."""

    def __init__(self) -> None:
        self.read: frozenset[str] = _NONE  # buffers that the numbers so far come from
        self._value: dict[int, torch.Tensor] = {}  # given ones and constants, by id
        self._of: dict[int, frozenset[str]] = {}  # known tensor, by id, -> the buffers that it comes from
        self._memory: dict[int, int | None] = {}  # known tensor, by id, -> the memory that it lies in
        self._ops: list[tuple[Any, Any, Any, Any]] = []  # func, args, kwargs, result
        self._alive: list[torch.Tensor] = []  # so that no other tensor gets their id

    def give(self, buffer: str, x: torch.Tensor, value: torch.Tensor) -> None:
        """Says that x is the buffer of this name, with the value that it has now."""
        if not _valueless(value):
            self._take(x, value, frozenset((buffer,)))

    def number(self, func: Any, args: Any, kwargs: Any) -> Any:
        """What func returns where it returns a number and its tensors are known, else None."""
        if func._schema.name not in _NUMBERS:
            return None
        tensors = _tensors((args, kwargs))
        if not all(self._known(x) for x in tensors):
            return None
        self.read = self.read.union(*(self._of[id(x)] for x in tensors))
        return self._computed(func, args, kwargs)

    def record(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Takes in one op of the trace, in its order."""
        read, made = _tensors((args, kwargs)), _tensors(result)
        if func._schema.name in _FILLED and not any(isinstance(x, torch.Tensor) for x in args[1:]):
            number = _FILLED[func._schema.name]
            self._know(result, _NONE)
            self._ops.append((torch.full, (tuple(result.shape), args[-1] if number is None else number), {"dtype": result.dtype}, result))
            return
        written = _written(func, args, kwargs)
        if not made or kinds.is_random(func) or any(x.requires_grad for x in made) or not all(self._known(x) for x in read):
            for x in written:
                for i in self._beside(x):
                    del self._of[i], self._memory[i]
            return
        of = _NONE.union(*(self._of[id(x)] for x in read))
        for x in made:
            self._know(x, of)
        for x in written:
            for i in self._beside(x):
                self._of[i] |= of
        self._ops.append((func, args, kwargs, result))

    def _know(self, x: torch.Tensor, of: frozenset[str]) -> None:
        self._of[id(x)], self._memory[id(x)] = of, _memory(x)

    def _beside(self, x: torch.Tensor) -> list[int]:
        """The known tensors that may lie in the same memory as x, itself included, by id."""
        memory = _memory(x)
        return [i for i, m in self._memory.items() if m is None or memory is None or m == memory]

    def _known(self, x: torch.Tensor) -> bool:
        if id(x) not in self._of and type(x) is torch.Tensor and not _valueless(x):
            self._take(x, x, _NONE)  # a constant
        return id(x) in self._of

    def _take(self, x: torch.Tensor, value: torch.Tensor, of: frozenset[str]) -> None:
        self._value[id(x)] = value
        self._know(x, of)
        self._alive.append(x)

    def values(self, of: Sequence[torch.Tensor]) -> list[torch.Tensor | None]:
        """The values of those that are known."""
        if not any(id(x) in self._of for x in of):
            return [None] * len(of)
        value = self._values()
        return [value[id(x)] if id(x) in self._of else None for x in of]

    def _computed(self, func: Any, args: Any, kwargs: Any) -> Any:
        """func of the values that the recorded ops make."""
        with _disable_current_modes(), torch.no_grad():
            value = self._values()
            return func(*_given(args, value), **_given(kwargs, value))

    def _values(self) -> dict[int, torch.Tensor]:
        """By id what the recorded ops make, all of them in their order: some change others' memory."""
        with _disable_current_modes(), torch.no_grad():
            value = {i: x.detach().cpu().clone() for i, x in self._value.items()}
            for f, a, k, result in self._ops:
                got = f(*_given(a, value), **_given(k, value))
                value.update((id(x), v) for x, v in zip(_tensors(result), _tensors(got)))
        return value


def _given(args: Any, value: dict[int, torch.Tensor]) -> Any:
    """args with these values, on the CPU."""

    def of(x: Any) -> Any:
        if isinstance(x, torch.Tensor):
            return value[id(x)]
        return torch.device("cpu") if isinstance(x, torch.device) else x

    return pytree.tree_map(of, args)


def _tensors(v: Any) -> list[torch.Tensor]:
    return [x for x in pytree.tree_leaves(v) if isinstance(x, torch.Tensor)]


def _written(func: Any, args: Any, kwargs: Any) -> list[torch.Tensor]:
    """The tensors that func changes."""
    if not func._schema.is_mutable:
        return []
    given = dict(zip((a.name for a in func._schema.arguments), args)) | kwargs
    return _tensors([given[a.name] for a in func._schema.arguments if a.alias_info is not None and a.alias_info.is_write and a.name in given])


def _memory(x: torch.Tensor) -> int | None:
    """Which memory x lies in, None where that is unknown."""
    try:
        return x.untyped_storage()._cdata
    except (NotImplementedError, RuntimeError):
        return None


def _valueless(x: torch.Tensor) -> bool:
    return x.is_meta or isinstance(x, torch._subclasses.FakeTensor)
