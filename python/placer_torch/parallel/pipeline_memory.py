"""What ops of a trace do to each other by memory: views, and changes in place."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx


class Memory:
    """root[n]: the node whose memory n's result lies in, n itself where it is its own.
    writes[n]: the roots that n changes. behind[n]: the ops that have to run before n for what
    they did, or have yet to read, there; n has no value of theirs."""

    def __init__(self, graph: fx.Graph):
        self.root: dict[fx.Node, fx.Node] = {}
        self.writes: dict[fx.Node, list[fx.Node]] = {}
        self.behind: dict[fx.Node, list[fx.Node]] = {}
        self.writers: dict[fx.Node, list[fx.Node]] = {}  # of a root
        self.readers: dict[fx.Node, list[fx.Node]] = {}
        for n in graph.nodes:
            self._take(n)

    def _take(self, n: fx.Node) -> None:
        of = _aliased(n) if n.op == "call_function" else None
        self.root[n] = self.root[of] if of is not None else n
        if n.op != "call_function":
            return
        changed = [self.root[x] for x in _written(n)]
        read = [self.root[x] for x in n.all_input_nodes]
        self.behind[n] = list(dict.fromkeys(w for r in read for w in self.writers.get(r, ())))
        for r in changed:
            self.behind[n] += [x for x in self.readers.get(r, ()) if x not in self.behind[n]]
            self.writers.setdefault(r, []).append(n)
        if changed:
            self.writes[n] = changed
        for r in read:
            self.readers.setdefault(r, []).append(n)


def _arguments(n: fx.Node) -> list[tuple[Any, Any]]:
    """The op's arguments by its schema, with the values given."""
    if not isinstance(n.target, torch._ops.OpOverload):
        return []
    schema = n.target._schema.arguments
    return [(a, n.args[k] if k < len(n.args) else n.kwargs.get(a.name)) for k, a in enumerate(schema)]


def _aliased(n: fx.Node) -> fx.Node | None:
    """The operand whose memory the result may share."""
    if n.target is operator.getitem:
        return n.args[0] if isinstance(n.args[0], fx.Node) else None
    return next((x for a, x in _arguments(n) if a.alias_info is not None and isinstance(x, fx.Node)), None)


def _written(n: fx.Node) -> list[fx.Node]:
    """The operands that n changes. Batch norm's statistics too, of which its schema is silent."""
    args = _arguments(n)
    found = [x for a, x in args if a.alias_info is not None and a.alias_info.is_write]
    named = {a.name: x for a, x in args}
    if named.get("training") or named.get("use_input_stats"):
        found += [named.get("running_mean"), named.get("running_var")]
    return [y for x in found for y in (x if isinstance(x, (list, tuple)) else (x,)) if isinstance(y, fx.Node)]
