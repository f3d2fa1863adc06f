"""A stage of a pipeline as a module: its part of a trace, with the model's own parameters."""

from __future__ import annotations

import collections
import dataclasses
import itertools
from typing import Any, Collection, Iterable, Mapping, Sequence, cast

import torch
import torch.utils._pytree as pytree
from torch import fx
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor

from . import pipeline_experts
from .errors import StrategyError
from .layouts import local, replicated
from .parts import Parted
from .pipeline_cut import Cut
from .pipeline_trace import Context
from .products import Transposed


@dataclasses.dataclass
class Segment:
    """Ops that run one after another: those of one layer, or what is between two."""

    layer: str  # the layer's first module, "" between layers
    ops: list[fx.Node]
    reads: list[fx.Node] = dataclasses.field(default_factory=list)
    makes: list[fx.Node] = dataclasses.field(default_factory=list)
    ends: list[fx.Node] = dataclasses.field(default_factory=list)  # values that nothing reads behind it


class Stage(torch.nn.Module):
    """Stage k of a cut. Its forward takes what the stage before hands on (nothing in the first
    one) and returns what it hands on itself, the loss in the last one; the batch's tensors come by
    `feed`, as every stage may read some. Its ops are one submodule per layer, and one for what
    is between two."""

    def __init__(self, cut: Cut, k: int, state: Mapping[str, torch.Tensor], layers: Sequence[Sequence[str]] = (), products: Collection[str] = (), mesh: DeviceMesh | None = None):
        """state: parameters, buffers and constants by the trace's names. products: paths of
        layers that stay modules here, for tensor parallelism on mesh."""
        super().__init__()
        self.given = cut.crossing[k - 1] if k else []
        self.sent = cut.crossing[k] if k + 1 < cut.count else [cut.trace.loss]
        self.leaves = cut.trace.leaves
        self.copied = cut.copied[k]
        self.mesh = mesh
        self.plan = _segments(cut, k, layers, self.sent)
        unchanged = {n for n in cut.ops if n.target is torch.ops.aten.view.default and not cut.memory.writers.get(cut.memory.root[n])}
        self.segments = torch.nn.ModuleList(_module(s, cut.trace.experts, state, products, unchanged) for s in self.plan)
        self._fed: collections.deque[Sequence[torch.Tensor]] = collections.deque()

    def paths(self, modules: Iterable[str]) -> tuple[str, ...]:
        """Where products of the model are here."""
        there = dict(self.named_modules())
        return tuple(path for m in modules for i in range(len(self.plan)) if (path := f"segments.{i}.{m}") in there)

    def layers(self) -> list[str]:
        """Paths here of the layers that are one segment with parameters of its own: what may
        be gathered by itself."""
        often = collections.Counter(s.layer for s in self.plan)
        holders = collections.Counter(id(p) for m in self.segments for p in m.parameters())
        return [f"segments.{i}" for i, (s, m) in enumerate(zip(self.plan, self.segments)) if s.layer and often[s.layer] == 1 and any(True for _ in m.parameters()) and all(holders[id(p)] == 1 for p in m.parameters())]

    def feed(self, micro_batches: Iterable[Sequence[torch.Tensor]]) -> None:
        """The tensors of each micro-batch, in the order in which they will be run."""
        self._fed.extend(micro_batches)

    def forward(self, *given: torch.Tensor) -> Any:
        value: dict[fx.Node, torch.Tensor] = dict(zip(self.given, map(self._received, given), strict=True))
        value.update(zip(self.leaves, (self._received(x) if x.is_floating_point() else x for x in self._fed.popleft()), strict=True))
        for n in self.copied:
            value[n] = value[n].clone()
        for s, m in zip(self.plan, self.segments):
            value.update(zip(s.makes, m(*[value[n] for n in s.reads]), strict=True))
            for n in s.ends:
                del value[n]
        return tuple(_handed_on(value[n], n) for n in self.sent)

    def _received(self, x: torch.Tensor) -> torch.Tensor:
        """Each part of a replica gets the whole of what crosses, and of the batch."""
        return x if self.mesh is None else replicated(x, self.mesh)


def _handed_on(x: torch.Tensor, n: fx.Node) -> torch.Tensor:
    """x as it is sent: whole, dense, with a dimension, not the leaf that was received, and of the type
    that n has in the trace, by which the next stage receives it: a kernel of the processor may make
    another, as oneDNN's of recurrent layers under autocast does."""
    x = local(x).to(n.meta["val"].dtype)
    if not x.dim():
        return torch.stack([x])
    return x.view_as(x) if x.is_leaf and x.is_contiguous() else x.contiguous()


def _segments(cut: Cut, k: int, layers: Sequence[Sequence[str]], sent: Sequence[fx.Node]) -> list[Segment]:
    """Stage k's ops in their order, those of one layer together where they follow each other."""
    mine = {n for n in cut.ops if cut.stage.get(n) == k}
    wanted = set(mine)
    for n in reversed(cut.ops):  # and what they read of those that run everywhere
        if n in wanted:
            wanted.update(x for x in cut.needs(n) if x in cut.everywhere)
    layer = {path: paths[0] for paths in layers for path in paths}
    shared = [n for n in cut.ops if n in wanted and n not in mine]
    found = [Segment("", shared)] if shared else []
    for name, ops in itertools.groupby((n for n in cut.ops if n in mine), lambda n: _layer(n, layer)):
        found.append(Segment(name, list(ops)))
    _link(found, sent)
    return found


def _layer(n: fx.Node, layer: dict[str, str]) -> str:
    path = n.meta["module"]
    while path and path not in layer:
        path = path.rpartition(".")[0]
    return layer.get(path, "")


def _link(segments: Sequence[Segment], sent: Sequence[fx.Node]) -> None:
    """What each segment reads of those before it, makes for those behind, and ends."""
    wanted = set(sent)
    for s in reversed(segments):
        inside = set(s.ops)
        s.makes = [n for n in s.ops if n in wanted]
        s.reads = list(dict.fromkeys(x for n in s.ops for x in n.all_input_nodes if x not in inside and x.op != "get_attr"))
        s.ends = [n for n in dict.fromkeys((*s.reads, *s.makes)) if n not in wanted]
        wanted.update(s.reads)


def _module(s: Segment, experts: Mapping[str, torch.nn.Module], of: Mapping[str, torch.Tensor], products: Collection[str], unchanged: Collection[fx.Node]) -> fx.GraphModule:
    """A segment's graph: reads -> tuple of makes. Autocast and no_grad are switched around the
    ops that had them. unchanged: views of what nothing changes in place. They copy where strides are
    not those of the trace, of which `contiguous()` is no part where its kernel for attention
    made it so."""
    graph = fx.Graph()
    value: dict[fx.Node, fx.Node] = {n: graph.placeholder(n.name) for n in s.reads}
    state: dict[str, Any] = {}
    switches = _Switches(graph)
    for n in s.ops:
        switches.to(n.meta["grad"], n.meta["context"])
        product = _product(n, of) if n.meta["module"] in products else None
        if product is not None:
            state[n.meta["module"]] = product[0]
            value[n] = graph.call_module(n.meta["module"], (value[product[1]],))
            continue
        if pipeline_experts.stands(n):
            given, _, path = n.args[:3]
            state[str(path)] = pipeline_experts.module(n, experts, of)
            value[n] = graph.call_module(str(path), tuple(value[x] for x in cast("Sequence[fx.Node]", given)))
            continue
        for x in n.all_input_nodes:
            if x.op == "get_attr" and x not in value:
                value[x] = graph.get_attr(str(x.target))
                state[str(x.target)] = of[str(x.target)]
        value[n] = graph.node_copy(n, lambda x: value[x])
        if n in unchanged:
            value[n].target = torch.ops.aten.reshape.default
        elif _foreign(n):
            value[n].target, value[n].args = _on_whole, (cast("Any", n.target), *value[n].args)
    for path in sorted({n.meta["module"] for n in s.ops} & set(products) - state.keys()):
        raise StrategyError(f"module {path} multiplies by its weight in other ways than by one op, and the strategy cuts it: take one without tp, or without a pipeline")
    switches.to(True, ())
    graph.output(tuple(value[n] for n in s.makes))
    return fx.GraphModule(state, graph, "Segment")


def _foreign(n: fx.Node) -> bool:
    """Whether n is an op of a library, of which DTensor knows nothing."""
    return isinstance(n.target, torch._ops.OpOverload) and n.target.namespace not in ("aten", "prims")


def _on_whole(op: Any, *args: Any, **kwargs: Any) -> Any:
    """op, of whole tensors: done by each part."""
    args, kwargs = pytree.tree_map_only(Parted, Parted.whole, (args, kwargs))
    mesh = next((x.device_mesh for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, DTensor)), None)
    if mesh is None:
        return op(*args, **kwargs)
    args, kwargs = pytree.tree_map_only(torch.Tensor, local, (args, kwargs))
    return pytree.tree_map_only(torch.Tensor, lambda x: replicated(x, mesh), op(*args, **kwargs))


def _product(n: fx.Node, of: Mapping[str, torch.Tensor]) -> tuple[torch.nn.Module, fx.Node] | None:
    """The op of an nn.Linear, an nn.Embedding or a transposed layer as such a module again, and
    what it reads."""
    args: Any = n.args
    if n.target is torch.ops.aten.linear.default:
        x, weight, bias = (*args, None)[:3]
        made: Any = torch.nn.Linear(1, 1, bias=bias is not None, device="meta")
        made.out_features, made.in_features = of[weight.target].shape
        if bias is not None:
            made.bias = of[bias.target]
    elif n.target is torch.ops.aten.embedding.default:
        weight, x = args[:2]
        rows, width = of[weight.target].shape
        made = torch.nn.Embedding(rows, width, padding_idx=None if len(args) < 3 or args[2] < 0 else args[2], device="meta")
    elif n.target is torch.ops.aten.addmm.default and args[0].op == args[2].op == "get_attr" and not n.kwargs:
        bias, x, weight = args
        made = Transposed(of[weight.target], of[bias.target])
    elif n.target in (torch.ops.aten.matmul.default, torch.ops.aten.mm.default) and args[1].op == "get_attr":
        x, weight = args
        made = Transposed(of[weight.target], None)
    else:
        return None
    made.weight = of[weight.target]
    return made, x


class _Switches:
    """Puts into a graph what enters and leaves no_grad and autocast."""

    def __init__(self, graph: fx.Graph):
        self.graph = graph
        self.was: fx.Node | None = None  # of gradients, where they are off now
        self.context: Context = ()
        self.entered: list[fx.Node] = []

    def to(self, grad: bool, context: Context) -> None:
        call = self.graph.call_function
        shared = next((i for i, (a, b) in enumerate(zip(self.context, context)) if a != b), min(len(self.context), len(context)))
        while len(self.entered) > shared:
            call(torch.amp.autocast_mode._exit_autocast, (self.entered.pop(),))
        for c in context[shared:]:
            self.entered.append(call(torch.amp.autocast_mode._enter_autocast, c))
        self.context = context
        if not grad and self.was is None:
            self.was = call(torch.is_grad_enabled)
            call(torch._C._set_grad_enabled, (False,))
        elif grad and self.was is not None:
            call(torch._C._set_grad_enabled, (self.was,))
            self.was = None
