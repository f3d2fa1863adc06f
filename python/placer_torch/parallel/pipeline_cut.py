"""Which stage each op of a trace runs in, and which values cross between stages."""

from __future__ import annotations

import operator
from typing import Iterable, Sequence

import torch
from torch import fx

from .. import kinds
from .errors import StrategyError
from .pipeline_memory import Memory
from .pipeline_trace import Trace, tensors


class Cut:
    """`stage`: of each op that runs in one stage, which. `everywhere`: ops that each stage
    that reads them runs by itself: made of the batch, constants and buffers that nothing
    changes, without parameters and random numbers (positions, masks, rotary angles). `crossing[k]`: what stage
    k hands to stage k + 1, in one order; a value that a later stage reads is handed on by
    those between. `copied[k]`: of what stage k is given, what it changes in place."""

    def __init__(self, trace: Trace, model: torch.nn.Module, stages: Sequence[Sequence[str]]):
        """stages: paths of modules. An op is in the stage that names its module or the next
        one around it; others (a sum between layers, the loss) run as soon as what they read
        is there, or in the last stage, if that has no modules, behind all modules. Raises StrategyError, which names the module, where stages do not run in order."""
        self.trace, self.count = trace, len(stages)
        self.home = homes(model, stages)
        self.memory = Memory(trace.graph)
        self.weights = {n: t for n, t in self._sources() if isinstance(t, torch.nn.Parameter)}
        self.ops = self._live()
        self.everywhere = self._everywhere()
        self.stage: dict[fx.Node, int] = {}
        self._assign()
        if not stages[-1]:
            self._end()
        self._check(stages)
        self.gradient = self._gradients()
        self.crossing = self._crossing()
        self.copied = [self._copied(k) for k in range(self.count)]

    def _sources(self) -> Iterable[tuple[fx.Node, torch.Tensor]]:
        return ((n, self.trace.state[str(n.target)]) for n in self.trace.graph.nodes if n.op == "get_attr")

    def needs(self, n: fx.Node) -> list[fx.Node]:
        """What has to run before n."""
        return [*n.all_input_nodes, *self.memory.behind.get(n, ())]

    def _live(self) -> list[fx.Node]:
        """The ops that the loss needs or that change a buffer, in their order."""
        kept = {self.trace.loss}
        for n in reversed(self.trace.graph.nodes):
            if any(r.op == "get_attr" for r in self.memory.writes.get(n, ())):
                kept.add(n)
            if n in kept:
                kept.update(self.needs(n))
        return [n for n in self.trace.graph.nodes if n in kept and n.op == "call_function"]

    def _everywhere(self) -> set[fx.Node]:
        found: set[fx.Node] = {n for n in self.trace.graph.nodes if n.op != "call_function" and n not in self.weights}
        found -= {r for n in self.ops for r in self.memory.writes.get(n, ()) if r.op == "get_attr"}
        for n in self.ops:
            random = isinstance(n.target, torch._ops.OpOverload) and kinds.is_random(n.target)
            if not random and all(x in found for x in self.needs(n)):
                found.add(n)
        while True:  # memory that an op of one stage changes is that stage's
            lost = {r for n in self.ops if n not in found for r in self.memory.writes.get(n, ()) if r in found and r.op == "call_function"}
            gone = {n for n in self.ops if n in found and (self.memory.root[n] in lost or any(x not in found for x in self.needs(n)))}
            if not gone:
                return found
            found -= gone

    def _assign(self) -> None:
        waiting: list[fx.Node] = []
        for n in self.ops:
            if n in self.everywhere:
                continue
            before = [(self.stage[x], x) for x in self.needs(n) if x in self.stage]
            low, latest = max(before, key=lambda b: b[0], default=(-1, n))
            home = self.home_of(n.meta["module"])
            if home is None or n.target is operator.getitem:  # which is where its tuple is
                home = low
            if home < low:
                raise StrategyError(f"module {n.meta['module']} cannot be in stage {home}: it reads what module {latest.meta['module'] or 'of the whole model'} of stage {low} makes, and stages run in order")
            if home < 0:
                waiting.append(n)
            else:
                self.stage[n] = home
        readers: dict[fx.Node, list[int]] = {}
        for n in reversed(self.ops):  # those that read parameters alone run with what reads them first
            if n in self.everywhere:
                continue
            if n not in self.stage:
                self.stage[n] = min(readers.get(n, [0]))
            for x in self.needs(n):
                readers.setdefault(x, []).append(self.stage[n])

    def _end(self) -> None:
        """What is behind all modules runs in the last stage."""
        last, before = self.count - 1, set[fx.Node]()  # what a module reads
        for n in reversed(self.ops):
            if n not in self.stage:
                continue
            if n in before or self.home_of(n.meta["module"]) is not None:
                before.update((n, *self.needs(n)))
            else:
                self.stage[n] = last

    def home_of(self, module: str) -> int | None:
        """The stage that names the module, or the next one around it."""
        while module:
            if module in self.home:
                return self.home[module]
            module = module.rpartition(".")[0]
        return None

    def _check(self, stages: Sequence[Sequence[str]]) -> None:
        runs = set(self.stage.values())
        for k in range(self.count):
            if k not in runs:
                why = "its modules are not in the step" if stages[k] else "it has no modules, and is not the last with something behind all modules"
                raise StrategyError(f"stage {k} ({', '.join(stages[k][:3])}) has nothing to run: {why}")
        if self.stage.get(self.trace.loss) != self.count - 1:
            raise StrategyError(f"the loss does not depend on the last stage ({', '.join(stages[-1][:3])})")
        for n, _ in self._sources():
            if n not in self.weights and n in self.memory.writers:
                of = {self.stage[x] for x in (*self.memory.writers[n], *self.memory.readers[n]) if x in self.stage}
                if len(of) > 1:
                    raise StrategyError(f"buffer {n.target} is changed, and stages {', '.join(map(str, sorted(of)))} use it: it can be in one stage alone")

    def _gradients(self) -> set[fx.Node]:
        """The ops whose result may have a gradient (all that do are among them)."""
        found = {n for n, t in self.weights.items() if t.requires_grad}
        for n in self.ops:
            floats = any(t.is_floating_point() or t.is_complex() for t in tensors(n))
            if n.meta["grad"] and floats and any(x in found for x in self.needs(n)):
                found.add(n)
        return found

    def _crossing(self) -> list[list[fx.Node]]:
        last: dict[fx.Node, int] = {}  # the last stage that reads a value
        for n in self.ops:
            for x in n.all_input_nodes if n in self.stage else ():
                if x in self.stage:
                    last[x] = max(last.get(x, 0), self.stage[n])
        for n in self.ops:
            if n in self.stage and last.get(n, 0) > self.stage[n] and not isinstance(n.meta["val"], torch.Tensor):
                raise StrategyError(f"module {n.meta['module'] or 'of the whole model'}: what op {n.target} makes is no tensor, and cannot go to another stage")
        return [[n for n in self.ops if n in self.stage and self.stage[n] <= k < last.get(n, 0)] for k in range(self.count - 1)]

    def _copied(self, k: int) -> list[fx.Node]:
        given = self.crossing[k - 1] if k else []
        changed = {r for n in self.ops if self.stage.get(n) == k for r in self.memory.writes.get(n, ())}
        found = [x for x in given if self.memory.root[x] in changed]
        for x in found:
            if sum(self.memory.root[y] is self.memory.root[x] for y in given) > 1:
                raise StrategyError(f"module {x.meta['module'] or 'of the whole model'}: stage {k} changes in place a tensor of an earlier stage of which it is given several views; change a clone of it")
        return found

    def holders(self) -> dict[str, int]:
        """The first stage of each parameter, and of each buffer that its ops change."""
        found = {}
        for n, _ in self._sources():
            stages = [self.stage[x] for x in (*n.users, *self.memory.writers.get(n, ())) if x in self.stage]
            if stages and (n in self.weights or n in self.memory.writers):
                found[str(n.target)] = min(stages)
        return found

    def parameters(self, k: int) -> list[str]:
        """Names of the parameters that stage k reads."""
        return [str(n.target) for n in self.weights if any(self.stage.get(u) == k for u in n.users)]


def homes(model: torch.nn.Module, stages: Sequence[Sequence[str]]) -> dict[str, int]:
    """The stage of each module that one names, by the module's first path."""
    first = {id(m): path for path, m in model.named_modules()}
    known = {path: first[id(m)] for path, m in model.named_modules(remove_duplicate=False)}
    home: dict[str, int] = {}
    for k, paths in enumerate(stages):
        for path in paths:
            if path not in known:
                raise StrategyError(f"stage {k} has module {path}, which the model does not")
            if home.setdefault(known[path], k) != k:
                raise StrategyError(f"module {path} is in stages {home[known[path]]} and {k}")
    return home
