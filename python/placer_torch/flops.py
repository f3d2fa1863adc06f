"""FLOPs, products and bytes of ops, from their shapes. A multiply-add counts two."""

from __future__ import annotations

import math
from typing import NamedTuple

from . import kinds
from .program import Op, Program, Ref, Spec, target_of


class Largest(int):
    """The largest of several numbers, `of`; which one may depend on the number of samples."""

    of: tuple[int, ...]

    def __new__(cls, of: tuple[int, ...]) -> Largest:
        made = super().__new__(cls, max(of, default=0))
        made.of = of
        return made


class Work(NamedTuple):
    """`gemm` is [batch, m, n, k] where the op amounts to such products; `bytes` are read and written."""

    flops: int
    gemm: tuple[int, int, int, int] | None
    bytes: int


def work(p: Program, o: Op) -> Work:
    """What an ATen op does once; sources and updates have no entry here."""
    specs = {r: p.spec(r) for r in o.inputs()}
    outs = [s for s in o.outputs if s is not None]
    if o.view:
        return Work(0, None, 0)
    moved = sum(s.bytes for s in specs.values()) + sum(s.bytes for s in outs)
    name = kinds.base(o.target)
    k = kinds.kind(o.target, len(outs[0].shape) if outs else 0)
    if k in kinds.GATHERS:
        index = sum(s.bytes for s in specs.values() if not s.dtype.is_floating_point)
        moved = 2 * sum(s.bytes for s in outs) + index

    def arg(i: int) -> Spec:
        a = o.args[i]
        assert isinstance(a, Ref)
        return p.spec(a)

    if name in ("_embedding_bag", "_embedding_bag_forward_only"):  # the rows that are looked up, not the table
        table, rows = arg(0), arg(1).elements
        looked = rows * math.prod(table.shape[1:])
        return Work(looked, None, moved - table.bytes + looked * table.bytes // max(1, table.elements))
    factors = PRODUCTS.get(name)
    if factors:
        a, b = (arg(i) for i in factors)
        gemm = product(a.shape, b.shape)
        return Work(2 * math.prod(gemm), gemm, moved)
    if k in ("GroupedMatMul", "GroupedMatMulGrad"):
        gemm = grouped(arg(0).shape, arg(1).shape)
        if k == "GroupedMatMulGrad":  # of the input and of the weights
            gemm = (2, *gemm[1:])
        return Work(2 * math.prod(gemm), gemm, moved)
    if name in ("convolution", "_convolution"):
        # [N, Cin, ...] with weight [Cout, Cin/groups, k...]; transposed: [Cin, Cout/groups, k...]
        x, w, groups = arg(0), arg(1), o.args[8]
        transposed = o.args[6]
        at = x if transposed else outs[0]
        positions = at.shape[0] * math.prod(at.shape[2:])
        window = w.shape[1] * math.prod(w.shape[2:])
        gemm = (groups, positions, w.shape[0] // groups, window)
        return Work(2 * math.prod(gemm), gemm, moved)
    if name == "convolution_backward":
        grad, x, w = arg(0), arg(1), arg(2)
        transposed, groups, mask = o.args[7], o.args[9], o.args[10]
        at = x if transposed else grad
        products = bool(mask[0]) + bool(mask[1])  # of the input, of the weight: as many operations each
        gemm = (groups * products, at.shape[0] * math.prod(at.shape[2:]), w.shape[0] // groups, w.shape[1] * math.prod(w.shape[2:]))
        return Work(2 * math.prod(gemm) + (grad.elements if mask[2] else 0), gemm if products else None, moved)
    if name.startswith("_scaled_dot_product_"):
        gemm = _attention(o, *(arg(i + name.endswith("_backward")).shape for i in range(3)))
        return Work(2 * math.prod(gemm), gemm, moved)
    if name.startswith("mkldnn_rnn_layer"):
        backward = name.endswith("_backward")
        x, wi, wh = arg(0), arg(1), arg(2)
        one = 2 * x.shape[0] * x.shape[1] * (math.prod(wi.shape) + math.prod(wh.shape))
        return Work(2 * one if backward else one, None, moved)
    if "batch_norm" in name and not name.endswith("no_training") and (name.endswith("backward") or o.args[5]):
        # Statistics first, so what they are of is read twice: the input, and of the backward op the gradient and the input.
        moved += sum(arg(i).bytes for i in range(1 + name.endswith("backward")))
    if name == "masked_fill":
        moved += 2 * outs[0].bytes  # a copy first, which is then filled
    per = kinds.PER_ELEMENT.get(k, 1.0)
    return Work(Largest(tuple(int(per * s.elements) for s in [*specs.values(), *outs])), None, moved)


# Ops that are one matrix product: the positions of its two factors.
PRODUCTS = {"mm": (0, 1), "bmm": (0, 1), "addmm": (1, 2), "baddbmm": (1, 2), "mv": (0, 1), "dot": (0, 1), "addmv": (1, 2), "_scaled_mm": (0, 1), "_int_mm": (0, 1)}


def _attention(o: Op, q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Attention in one kernel as one product: of each head of keys, the queries that share it by the
    keys that a query sees in the mean, of all columns of keys and values together. Backward
    computes the scores again, 5 products for 2, and each head of queries by itself."""
    backward = kinds.base(o.target).endswith("_backward")
    heads, rows, seen = math.prod((q if backward else k)[:-2]), math.prod(q[:-1]), k[-2]
    if causal(o) and seen >= q[-2]:
        seen = seen - q[-2] + (q[-2] + 2) // 2
    columns = 3 * q[-1] + 2 * v[-1] if backward else q[-1] + v[-1]
    return (heads, rows // heads, seen, columns)


def causal(o: Op) -> bool:
    """Whether an op of attention says that queries see no keys behind themselves."""
    names = [a.name for a in target_of(o.target)._schema.arguments]
    if "is_causal" not in names:
        return False
    at = names.index("is_causal")
    return bool(o.args[at] if at < len(o.args) else o.kwargs.get("is_causal", False))


def grouped(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, int, int, int]:
    """[batch, m, n, k] of products of groups of rows, as of a mixture's experts: [rows, k] by
    [groups, k, n], or [m, rows] by [rows, n], which makes [groups, m, n]. How many rows a group
    has is not known before the step runs; all together they are as one product."""
    if len(a) == len(b) == 3:
        return product(a, b)
    if len(a) == 3:  # [groups, m, k] by [k, columns]
        return (1, a[1], b[1], a[2])
    return (1, a[0], b[-1], a[1])


def product(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, int, int, int]:
    """[batch, m, n, k] of the product of factors of these shapes."""
    if len(a) == 3:
        return (a[0], a[1], b[2], a[2])
    m = a[0] if len(a) == 2 else 1
    n = b[1] if len(b) == 2 else 1
    return (1, m, n, a[-1])
