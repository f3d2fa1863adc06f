"""What an update reads, writes and computes, by its rule on tensors without values."""

from __future__ import annotations

import collections
import functools
import math
from typing import Any, NamedTuple

import torch
import torch.utils._pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from . import flops, kinds
from .program import Op, Program, Spec
from .rules import Hyper, rule

# A step far enough from the first that the rule does what it does in most.
_LATE = 1000


class Products(NamedTuple):
    """What a rule multiplies, as one product an iteration, [batch, m, n, k], that stands for so
    many kernels. `repeats` are the iterations."""

    gemm: tuple[int, int, int, int]
    dtype: torch.dtype
    repeats: int
    kernels: int


class Applied(NamedTuple):
    """Of one step; one kernel for each of the rule's operations. A multiply-add counts two."""

    flops: int
    bytes: int
    products: Products | None


def work(p: Program, o: Op) -> Applied:
    """Of an update."""
    param, grad, slots, h = o.args
    return _work(o.target, p.spec(param), p.spec(grad), tuple(p.spec(r) for r in slots), _Same(h))


class _Same:
    """Hyperparameters as a key of a cache."""

    def __init__(self, h: Hyper):
        self.h, self._key = h, repr(sorted(h.items()))

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._key == other._key


@functools.lru_cache(maxsize=4096)
def _work(target: str, param: Spec, grad: Spec, slots: tuple[Spec, ...], h: _Same) -> Applied:
    p, g, *kept = (torch.empty_strided(s.shape, s.stride, dtype=s.dtype, device="meta") for s in (param, grad, *slots))
    apply = rule(target)
    with torch.no_grad():
        with _Counter():
            apply(p, g, kept, _LATE - 1, h.h)  # makes what it keeps beside the slots
        with _Counter() as found:
            apply(p, g, kept, _LATE, h.h)
    return Applied(found.flops, found.bytes, _products(found.products))


def _products(found: collections.Counter[tuple[tuple[int, int, int, int], torch.dtype]]) -> Products | None:
    """Of products by their number: of the shortest side and as deep as makes their operations, as
    Newton and Schulz' of an [m, n] matrix, m < n, are of an [m, m] one: m n, m m and n m
    multiplications of m numbers each (torch.optim.Muon). Products of vectors, as Adafactor's of
    rows and columns, go through memory as other operations do."""
    if not found or len({dtype for _, dtype in found}) > 1:
        return None
    repeats = math.gcd(*found.values())
    side = min(d for gemm, _ in found for d in gemm[1:])
    if side == 1:
        return None
    depth, rest = divmod(sum(n // repeats * math.prod(gemm) for (gemm, _), n in found.items()), max(1, side * side))
    if rest or not depth:
        return None
    return Products((1, side, side, depth), next(dtype for _, dtype in found), repeats, sum(found.values()) // repeats)


_OVERWRITES = ("copy_", "fill_", "zero_")


class _Counter(TorchDispatchMode):
    """Counts the ops on the meta device, each tensor once; numbers on the host are left out."""

    def __init__(self) -> None:
        super().__init__()
        self.flops = self.bytes = 0
        self.products: collections.Counter[tuple[tuple[int, int, int, int], torch.dtype]] = collections.Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = kinds.base(str(func))
        if name == "_local_scalar_dense" and args[0].is_meta:
            return 0.5  # some rules divide by one less than it
        out = func(*args, **kwargs)
        if kinds.is_view(func) or name.startswith("empty"):
            return out
        read, made = _tensors((args[1:] if name in _OVERWRITES else args, kwargs)), _tensors(out)
        if any(x.is_meta for x in made):
            self.bytes += sum(x.nbytes for x in (*read, *made) if x.is_meta)
            factors = flops.PRODUCTS.get(name)
            if factors:
                a, b = (tuple(args[k].shape) for k in factors)
                gemm = flops.product(a, b)
                self.flops += 2 * math.prod(gemm)
                self.products[gemm, made[0].dtype] += 1
            else:
                kind = kinds.KINDS.get(name.rstrip("_"), "")
                self.flops += int(kinds.PER_ELEMENT.get(kind, 1.0) * max(x.numel() for x in (*read, *made)))
        return out


def _tensors(v: Any) -> list[torch.Tensor]:
    return list({id(x): x for x in pytree.tree_leaves(v) if isinstance(x, torch.Tensor)}.values())
