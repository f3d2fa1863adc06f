"""A step at any number of samples: captured at several, with sizes as polynomials in their number."""

from __future__ import annotations

from typing import Any, Callable, Iterator, Sequence

import torch

from placer_runtime.files import write_text

from . import batches, graph
from .errors import CaptureError, PlacerTorchError
from .flops import Largest
from .polynomial import Polynomial, fit
from .program import Program, Spec

DIM = "batch"  # the size's name in the file

# What may depend on the number of samples. All else of an op has to be the same.
SIZES = {"flops", "gemm", "bytes", "resident", "workspace", "shape"}


class FixedError(CaptureError):
    """A step that holds for one number of samples alone: says which op is in the way."""


def count(batch: Any) -> int:
    """How many samples a batch has: the leading dimension of its first tensor, 0 without one."""
    return next((x.shape[0] for x in _tensors(batch) if x.dim()), 0)


def resized(batch: Any, samples: int, n: int) -> Any:
    """batch, which has so many samples, with n: the tensors whose leading dimension is the
    first tensor's, or the number of samples, are without values and have another."""
    first = count(batch)
    if not first:
        raise FixedError("the batch has no tensor whose leading dimension could be another")
    if samples < 1 or first % samples:
        raise FixedError(f"the leading dimension of the batch's first tensor is {first}: it is not a multiple of {samples} samples")

    def leaf(x: Any) -> Any:
        if not isinstance(x, torch.Tensor) or not x.dim() or x.shape[0] not in (first, samples):
            return x
        rows = n * (first // samples if x.shape[0] == first else 1)
        return _rows(x, rows)

    return batches.rebuild(batch, iter([leaf(x) for _, x in batches.leaves(batch)]))


def _tensors(batch: Any) -> Iterator[torch.Tensor]:
    return (x for _, x in batches.leaves(batch) if isinstance(x, torch.Tensor))


def _rows(x: torch.Tensor, rows: int) -> torch.Tensor:
    """A tensor like x with another leading dimension, dense, its dimensions in memory in the
    order of x's; on the meta device."""
    s = Spec(tuple(x.shape), tuple(x.stride()), x.dtype).apart
    shape, strides, step = (rows, *s.shape[1:]), [0] * x.dim(), 1
    for k in sorted(range(x.dim()), key=lambda k: (s.stride[k], -k)):
        strides[k], step = step, step * max(shape[k], 1)
    return torch.empty_strided(shape, strides, dtype=x.dtype, device="meta")


def text(p: Program, n: int, capture: Callable[[int], Program]) -> str:
    """The graph file of p, which has n samples, for any number of samples. capture makes
    the same step at another number. Raises FixedError where that is another step, and says
    at which number, which op and how."""
    docs = {n: graph.docs(p)}

    def at(m: int) -> list[dict[str, Any]]:
        if m not in docs:
            try:
                q = capture(m)
            except FixedError:
                raise
            except PlacerTorchError as e:
                raise FixedError(f"at {m} samples: {e}") from None
            docs[m] = graph.docs(q)
        return docs[m]

    # One more, and enough that what depends on which of two sizes is larger shows; where that is
    # no straight line two more. Sizes are odd: halves show.
    points = [n, n + 1, 8 * n + 5 - n % 2]
    try:
        ops = _open(points, [at(m) for m in points])
    except FixedError:
        points += [2 * n + 3, 3 * n + 4]
        ops = _open(points, [at(m) for m in points])
    return graph.render(p.name, ops, {DIM: {"size": n, "min": _least(at, ops, n)}})


def write(p: Program, n: int, capture: Callable[[int], Program], file: str) -> str:
    """Writes text(p, n, capture), or where that is of one number alone p's own graph file.
    Returns why it is, else ""."""
    try:
        write_text(file, text(p, n, capture))
    except FixedError as e:
        graph.write(p, file)
        return str(e)
    return ""


def _least(at: Callable[[int], list[dict[str, Any]]], ops: list[dict[str, Any]], n: int) -> int:
    """The least number of samples for which ops hold: 1, where torch takes one sample and has
    the same products, if with fewer ops around them (a dimension of size 1 needs no copy of a
    transposed tensor, and no sum over it of a gradient); else 2, else n."""
    for m in range(1, min(n, 3)):
        try:
            got, want = at(m), closed(ops, m)
        except FixedError:
            continue
        if got == want or m == 1 and _products(got) == _products(want):
            return m
    return n


def _products(ops: list[dict[str, Any]]) -> list[int]:
    """The FLOPs of all products."""
    return sorted(o["flops"] for o in ops if "gemm" in o)


def closed(v: Any, n: int) -> Any:
    """What _open returns, at n samples: numbers."""
    if isinstance(v, Most):
        return max(x.at(n) for x in v.of)
    if isinstance(v, list):
        return [closed(x, n) for x in v]
    if isinstance(v, dict):
        return {k: closed(x, n) for k, x in v.items()}
    return v


class Most(str):
    """The largest of several polynomials, as the text of a graph file."""

    of: tuple[Polynomial, ...]

    def __new__(cls, of: Sequence[Polynomial]) -> Most:
        left: list[Polynomial] = []
        for x in dict.fromkeys(of):
            if not any(y.covers(x) for y in left):
                left = [y for y in left if not x.covers(y)] + [x]
        texts = [x.text(DIM) for x in left]
        made = super().__new__(cls, texts[0] if len(texts) == 1 else f"max({', '.join(texts)})")
        made.of = tuple(left)
        return made


def _open(points: list[int], docs: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The ops of all docs as one, each of which is of so many samples as points has."""
    first = docs[0]
    for m, other in zip(points, docs):
        for i, (a, b) in enumerate(zip(first, other)):
            if a["name"] != b["name"] or a["kind"] != b["kind"]:
                raise FixedError(f"op {i} is {_named(a)} at {points[0]} samples and {_named(b)} at {m}")
        if len(first) != len(other):
            raise FixedError(f"the step has {len(first)} ops at {points[0]} samples and {len(other)} at {m}; the last that both have is {_named(first[min(len(first), len(other)) - 1])}")
    return [_joined(points, list(same), f"op {_named(same[0])}", "") for same in zip(*docs)]


def _named(op: dict[str, Any]) -> str:
    return f"{op['name']} ({op['kind']}{' of module ' + op['module'] if op.get('module') else ''})"


def _joined(points: list[int], v: list[Any], where: str, key: str) -> Any:
    """Values of the same place of docs as one value."""
    a = v[0]
    if isinstance(a, dict) and all(isinstance(x, dict) and x.keys() == a.keys() for x in v):
        return {k: _joined(points, [x[k] for x in v], where, k) for k in a}
    if isinstance(a, list) and all(isinstance(x, list) and len(x) == len(a) for x in v):
        return [_joined(points, [x[k] for x in v], where, key) for k in range(len(a))]
    if all(type(x) is type(a) and x == a for x in v) and not (isinstance(a, Largest) and len(set(a.of)) > 1):
        return a
    fixed = FixedError(f"{where}: its {key or 'form'} depends on the number of samples in a way that a file cannot have: " + ", ".join(f"{x} at {m}" for m, x in zip(points, v)))
    if key not in SIZES or not all(isinstance(x, int) for x in v):
        raise fixed
    columns = zip(*(x.of if isinstance(x, Largest) else (x,) for x in v))
    of = [fit(list(zip(points, c))) for c in columns]
    if any(x is None for x in of):
        raise fixed
    made = Most([x for x in of if x is not None])
    return a if len(made.of) == 1 and made.of[0].c[1:] == (0, 0) else made
