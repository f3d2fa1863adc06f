"""Which layer of the model each op belongs to, from 1: what a human expert's placement goes by."""

from __future__ import annotations

from . import kinds
from .program import Op, Program

STACKS = ("encoder", "decoder")  # layer k of either is layer k


def layers(p: Program) -> list[int]:
    """Per op its layer, 0 for none. A layer is an element of a list of modules,
    the outermost one of its path (`h.3` of `h.3.attn`). They count in the order in
    which they first run, those of an encoder and those of a decoder each from 1. A
    module outside of lists, as attention or the head, belongs to the last layer
    that has run before it, or the first; an embedding, and what the model does in
    no module, to none. A model without lists has no layers."""
    number: dict[str, int] = {}
    counts: dict[str, int] = {}
    last = 0
    for o in p.ops:
        if o.role != "call" or o.phase != "forward" or not o.module:
            continue
        element = _element(o.module)
        if element is None:
            if kinds.base(o.target) != "embedding":
                number.setdefault(o.module, max(last, 1))
            continue
        if element not in number:
            stack = next((s for s in STACKS if s in element.split(".")), "")
            counts[stack] = number[element] = counts.get(stack, 0) + 1
        last = max(last, number[element])
    return [_of(o, number) if last else 0 for o in p.ops]


def _of(o: Op, number: dict[str, int]) -> int:
    return number.get(_element(o.module) or o.module, 0)


def _element(path: str) -> str | None:
    """`h.3` of `h.3.attn.2`; None where no component is a number."""
    parts = path.split(".")
    for k, x in enumerate(parts):
        if x.isdecimal():
            return ".".join(parts[: k + 1])
    return None
