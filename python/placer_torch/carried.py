"""Whether the steps behind a traced one are that step again, whatever it leaves in attributes."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, Callable, Collection, Iterator, Mapping

import torch
import torch.fx
import torch.utils._pytree as pytree

from . import kinds
from .attributes import Attributes
from .errors import CaptureError
from .watched import watched

_STEPS = 3  # that are traced at most

# Ops that hand on what they are given.
_SAME = ("aten.alias.default", "aten.detach.default", "aten.lift_fresh.default")


@dataclasses.dataclass
class Step:
    """One traced step. `left`: the traced tensors in attributes behind it, by path; `nodes`:
    what makes them; `fixed`: the placeholders of buffers that the step only reads; `values`:
    those of `left` that are known, by id; `own`: parameters and buffers, by the id of what
    stands for them in the trace."""

    graph: torch.fx.Graph
    left: dict[str, torch.Tensor]
    nodes: dict[str, torch.fx.Node]
    fixed: frozenset[torch.fx.Node]
    values: dict[int, torch.Tensor]
    own: dict[int, torch.Tensor]


@dataclasses.dataclass
class _Kept:
    """What stands for a tensor that a step has left at `path`. `node` made it, where it is of
    the first step; `carries`: it depends on what that step was given, or on what it drew."""

    path: str
    tensor: torch.Tensor
    node: torch.fx.Node | None
    carries: bool


class Carried:
    """fake makes a tensor without values like another; trace makes a step with attributes as they are."""

    def __init__(self, kept: Attributes, fake: Callable[[torch.Tensor], torch.Tensor], trace: Callable[[], Step]):
        self.kept, self.fake, self.trace = kept, fake, trace
        self.stands: dict[int, _Kept] = {}
        self.looked: list[str] = []  # paths of numbers that code looked at

    def refuse(self) -> Step:
        """The first step. Raises CaptureError where one behind it is another: it reads a tensor
        that one before it left, or has other ops by anything else in attributes. As many steps
        are traced as it takes to come to attributes that were there before; where numbers go on
        changing, the code may count them alone."""
        seen = [self.kept.state(())]
        first = step = self.trace()
        while True:
            self.stand(step, step is first)
            seen.append(self.kept.state(self.stands))
            if seen[-1] in seen[:-1] or len(seen) > _STEPS:
                return first
            if len(seen) == _STEPS:
                self.watch(seen[-2], seen[-1])
            step = self.again(_changed(seen[-2], seen[-1]))
            self.compare(first, step, _changed(*seen[-2:]))

    def again(self, changed: str) -> Step:
        try:
            return self.trace()
        except CaptureError as e:
            raise CaptureError(f"{e}; this is of a step behind the first, by attribute {changed}, which the model's code changes") from e

    def stand(self, step: Step, first: bool) -> None:
        """Puts tensors of no trace in the place of those that step has left."""
        made: dict[int, torch.Tensor] = {}
        for leaf in list(self.kept.leaves()):
            if leaf.path not in step.left or leaf.value is not step.left[leaf.path]:
                continue
            x, node = leaf.value, step.nodes.get(leaf.path)
            if id(x) in step.own:
                made[id(x)] = step.own[id(x)]
            elif id(x) not in made:
                value = step.values.get(id(x))
                t = made[id(x)] = self.fake(x) if value is None else value
                self.stands[id(t)] = _Kept(leaf.path, t, _origin(node) if first and node is not None else None, node is None or depends(node, step.fixed))
            leaf.put(made[id(x)])

    def watch(self, before: dict[str, Any], now: dict[str, Any]) -> None:
        """Has numbers that differ say whether code looks at them."""
        for leaf in list(self.kept.leaves()):
            if type(leaf.value) in (int, float) and before.get(leaf.path) != now[leaf.path]:
                leaf.put(watched(leaf.value, functools.partial(self.looked.append, leaf.path)))

    def compare(self, first: Step, step: Step, changed: str) -> None:
        read = [self.stands[id(t)] for t in map(_held, step.graph.nodes) if id(t) in self.stands]
        there = {leaf.path: leaf.value for leaf in self.kept.leaves()}
        for x in read:
            if x.carries or there.get(x.path) is not x.tensor:
                raise CaptureError(f"attribute {x.path} carries a value from one step to the next, which a captured step would not: make it a buffer of the model, register_buffer({_name(x.path)!r}, …)")
        if self.looked or not _alike(first, step, read):
            changed = self.looked[0] if self.looked else changed
            number = type(there.get(changed)) is not bool and isinstance(there.get(changed), (int, float))
            way = "a number that the model's code changes and a captured step would not: keep it in a buffer, torch.tensor(…)" if number else "a value that the model's code changes and a captured step would not: set it before the capture"
            raise CaptureError(f"the step depends on attribute {changed}, {way}")


def _changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The path of what differs, first of what is no tensor."""
    paths = [k for k in (*now, *before) if before.get(k) != now.get(k)]
    return next((k for k in paths if now.get(k) is not torch.Tensor), paths[0] if paths else "")


def _name(path: str) -> str:
    """The last name of a path."""
    return path.partition("[")[0].rpartition(".")[2]


def _held(n: torch.fx.Node) -> Any:
    """The tensor that a node holds, None of all else."""
    return getattr(n.graph.owning_module, str(n.target)) if n.op == "get_attr" else None


def depends(n: torch.fx.Node, fixed: Collection[torch.fx.Node] = ()) -> bool:
    """Whether n's value depends on what the step is given, other than these placeholders, or
    on what it draws: not on shapes alone."""
    seen: set[torch.fx.Node] = set()
    left = [n]
    while left:
        n = left.pop()
        if n in seen or n in fixed:
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


def unchanged(now: Any, n: torch.fx.Node) -> bool:
    """Whether now is what buffer n is given as, of which the step begins with a copy."""
    if not isinstance(now, torch.fx.Node):
        return False
    now = _origin(now)
    return str(now.target) == "aten.clone.default" and _origin(now.all_input_nodes[0]) is n


def _origin(n: torch.fx.Node) -> torch.fx.Node:
    """The node whose result n hands on."""
    while n.op == "call_function" and str(n.target) in _SAME:
        n = n.all_input_nodes[0]
    return n


def _live(graph: torch.fx.Graph, but: Collection[torch.fx.Node]) -> list[torch.fx.Node]:
    """The ops that what a step returns is made of, in order, without these and what they are made of."""
    (out,) = (n for n in graph.nodes if n.op == "output")
    seen: set[torch.fx.Node] = set()
    left = list(out.all_input_nodes)
    while left:
        n = _origin(left.pop())
        if n not in seen and n not in but:
            seen.add(n)
            left += n.all_input_nodes
    return [n for n in graph.nodes if n in seen and n.op == "call_function"] + [out]


def _alike(a: Step, b: Step, kept: Collection[_Kept]) -> bool:
    """Whether two steps have the same ops of the same tensors, where b reads what a made and left."""
    made = {x.node: x.tensor for x in kept if x.node is not None}
    ours, theirs = _live(a.graph, made), _live(b.graph, ())
    number = {n: i for nodes in (ours, theirs) for i, n in enumerate(nodes)}
    given = {n: i for g in (a.graph, b.graph) for i, n in enumerate(n for n in g.nodes if n.op == "placeholder")}

    def same(x: Any, y: Any) -> bool:
        if not isinstance(x, torch.fx.Node) or not isinstance(y, torch.fx.Node):
            return type(x) is type(y) and (x == y or x != x)
        x, y = _origin(x), _origin(y)
        if y.op == "get_attr":
            return _equal(made[x] if x in made else _held(x), _held(y))
        return x.op == y.op and x not in made and (given[x] == given[y] if x.op == "placeholder" else number[x] == number[y])

    return len(ours) == len(theirs) and all(x.target == y.target and _all(same, (x.args, x.kwargs), (y.args, y.kwargs)) for x, y in zip(ours, theirs))


def _all(same: Callable[[Any, Any], bool], x: Any, y: Any) -> bool:
    """same of the leaves of two nested arguments of one form."""
    xs, ys = list(_leaves(x)), list(_leaves(y))
    return len(xs) == len(ys) and all(map(same, xs, ys))


def _leaves(v: Any) -> Iterator[Any]:
    yield from pytree.tree_leaves(v, is_leaf=lambda x: x is None or isinstance(x, torch.fx.Node))


def _equal(x: Any, y: Any) -> bool:
    """Whether two constants are one, or have the same values."""
    if x is y or not isinstance(x, torch.Tensor) or not isinstance(y, torch.Tensor):
        return x is y
    values = not any(t.is_meta or isinstance(t, torch._subclasses.FakeTensor) for t in (x, y))
    return values and x.shape == y.shape and x.dtype == y.dtype and bool(torch.allclose(x, y, rtol=0, atol=0, equal_nan=True))
