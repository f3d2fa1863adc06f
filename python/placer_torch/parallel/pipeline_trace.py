"""The forward computation of loss(model, micro-batch) as one flat graph, with the module of each op."""

from __future__ import annotations

import contextlib
import dataclasses
import operator
import warnings
from typing import Any, Callable, Iterator, Sequence

import torch
import torch.fx.traceback as traceback
import torch.utils._pytree as pytree
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.utils.stateless import _reparametrize_module
from torch.overrides import TorchFunctionMode

from .. import batches, checks, settings
from ..errors import PlacerTorchError
from ..where import where
from . import pipeline_experts
from .errors import StrategyError

Context = tuple[tuple[Any, ...], ...]  # regions of autocast, (device, dtype, on, cache), outermost first

KEY = "placer"  # in a node's meta["custom"]: (path of the module, whether gradients are on)


@dataclasses.dataclass
class Trace:
    """Nodes of `graph` are call_function, but for the placeholders of the batch's tensors
    (`leaves`, in the order of batches.leaves) and get_attr of `state`: parameters and buffers
    by the model's names, constants by others. The meta of an op has "module", the path of the
    module whose forward runs, "grad", whether gradients are on, and "context", the autocast
    around it; "val" is what it makes, of fake tensors."""

    graph: fx.Graph
    leaves: list[fx.Node]
    state: dict[str, torch.Tensor]
    loss: fx.Node
    names: dict[int, str]  # of each parameter and buffer of the model, by id
    experts: dict[str, torch.nn.Module]  # those that are one op each, by path


def trace(model: torch.nn.Module, loss: Callable[[Any, Any], torch.Tensor], batch: Any, device: torch.device, experts: Sequence[str] = ()) -> Trace:
    """Runs loss(model, batch) over fake tensors on device, by torch.export, as torch's own
    pipelines do; the model may lie elsewhere. The ops are those above autograd: each stage's
    part of them has its own backward. experts: paths of modules that are one op each. Raises StrategyError where the ops alone would not train
    as the model does."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)

    def fake(t: torch.Tensor) -> torch.Tensor:
        with mode:
            made = torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=device)
        return torch.nn.Parameter(made, t.requires_grad) if isinstance(t, torch.nn.Parameter) else made

    leaves = [fake(x) if isinstance(x, torch.Tensor) else x for _, x in batches.leaves(batch)]
    given = tuple(x for x in leaves if isinstance(x, torch.Tensor))
    state = {k: fake(t) for named in (model.named_parameters(), model.named_buffers()) for k, t in named}
    _check_hooks(model)
    watch = _Watch(model)
    whole = _Whole(model, loss, batch, leaves, watch)
    with _reparametrize_module(model, state, tie_weights=True), pipeline_experts.opaque(model, experts), watch, _Marks(watch), traceback.preserve_node_meta(), warnings.catch_warnings(), settings.without_fast_path(), settings.without_logs(), checks.no_other_randomness(), checks.no_loss_scaling():
        warnings.simplefilter("ignore")
        try:
            exported = torch.export.export(whole, given, strict=False)
        except PlacerTorchError:
            raise
        except Exception as e:
            raise _explained(e, watch) from e
    return _Flat(model, exported.module()).trace(len(given), {path: model.get_submodule(path) for path in experts})


def _names(model: torch.nn.Module) -> tuple[dict[str, str], dict[int, str]]:
    """The first name of each parameter and buffer, by any of its names and by id."""
    first = {id(t): k for named in (model.named_parameters(), model.named_buffers()) for k, t in named}
    every = (*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False))
    return {k: first[id(t)] for k, t in every}, first


class _Whole(torch.nn.Module):
    """loss(model, batch) of the batch's tensors."""

    def __init__(self, model: torch.nn.Module, loss: Callable[[Any, Any], torch.Tensor], batch: Any, leaves: list[Any], watch: _Watch):
        super().__init__()
        self.model = model
        self.rest = (loss, batch, leaves, watch)  # a tuple, so that nothing of it becomes a module

    def forward(self, *given: torch.Tensor) -> torch.Tensor:
        loss, batch, leaves, watch = self.rest
        it = iter(given)
        value = loss(self.model, batches.rebuild(batch, iter([next(it) if isinstance(x, torch.Tensor) else x for x in leaves])))
        if not isinstance(value, torch.Tensor) or value.dim() != 0:
            raise StrategyError(f"loss returned {type(value).__name__}{'' if not isinstance(value, torch.Tensor) else f' of shape {list(value.shape)}'}; it has to return a scalar tensor")
        watch.functions(value)
        return value


def _check_hooks(model: torch.nn.Module) -> None:
    for path, m in model.named_modules():
        if m._backward_hooks or m._backward_pre_hooks:
            raise StrategyError(f"module {path or 'of the whole model'} has a backward hook, which a stage of a pipeline would not run: remove it, or take a strategy without pipeline")


class _Watch:
    """While it is entered: the module whose forward runs, and refusals of what a trace of ops
    above autograd loses without a word."""

    def __init__(self, model: torch.nn.Module):
        self.model, self.stack = model, [""]
        self.seen: set[Any] = set()  # nodes of the autograd graph
        self._undo = contextlib.ExitStack()

    def __enter__(self) -> _Watch:
        for path, m in self.model.named_modules():
            for h in (m.register_forward_pre_hook(self._enter(path)), m.register_forward_hook(self._leave, always_call=True)):
                self._undo.callback(h.remove)
        was = torch.Tensor.register_hook

        def refused(*_: Any) -> Any:
            raise self.error("registers a hook of an activation, which a cut graph does not have")

        torch.Tensor.register_hook = refused  # type: ignore[method-assign]
        self._undo.callback(setattr, torch.Tensor, "register_hook", was)
        return self

    def __exit__(self, *_: Any) -> None:
        self._undo.close()

    def _enter(self, path: str) -> Callable[..., None]:
        def hook(module: torch.nn.Module, args: Any) -> None:
            self.stack.append(path)

        return hook

    def _leave(self, module: torch.nn.Module, args: Any, out: Any) -> None:
        try:
            self.functions(out)
        finally:
            self.stack.pop()

    def functions(self, out: Any) -> None:
        """Raises StrategyError where an autograd.Function made something of out since the last call."""
        left = [x.grad_fn for x in pytree.tree_leaves(out) if isinstance(x, torch.Tensor)]
        while left:
            n = left.pop()
            if n is None or n in self.seen:
                continue
            self.seen.add(n)
            if isinstance(n, torch.autograd.function.BackwardCFunction) and not _registered(n):
                raise self.error(f"runs an autograd.Function with a backward of its own, {n.name().removesuffix('Backward')}, which a cut graph does not have")
            left += [f for f, _ in n.next_functions]

    def error(self, why: str) -> StrategyError:
        return StrategyError(f"module {self.stack[-1] or 'of the whole model'} cannot be cut into stages: it {why}; take a strategy without pipeline")


def _registered(n: Any) -> bool:
    """Whether n is the backward that torch.library has for an op, which runs where the op does."""
    return getattr(type(n)._forward_cls, "__module__", "") == "torch._library.autograd"


class _Marks(TorchFunctionMode):
    """Marks each node with the module whose forward runs, which regions within regions lose,
    and with whether gradients are on, of which a region of no_grad within one of autocast has
    no sign in an exported graph."""

    def __init__(self, watch: _Watch):
        super().__init__()
        self.watch = watch

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        traceback.current_meta["custom"] = {KEY: (self.watch.stack[-1], torch.is_grad_enabled())}
        return func(*args, **(kwargs or {}))


def _explained(e: Exception, watch: _Watch) -> StrategyError:
    at = where(e)
    first = str(e).strip().splitlines()[0] if str(e).strip() else ""
    hint = "; the code takes a number or a shape out of a tensor's values" if "DataDependent" in type(e).__name__ or "data-dependent" in first else ""
    return StrategyError(f"module {watch.stack[-1] or 'of the whole model'} cannot be cut into stages{f' ({at})' if at else ''}: {type(e).__name__}: {first}{hint}")


class _Flat:
    """An exported module with the regions of autocast and no_grad, which it has as graphs of
    their own, put in their places, and without its checks of shapes."""

    def __init__(self, model: torch.nn.Module, exported: fx.GraphModule):
        self.exported = exported
        self.model = model
        self.first, self.names = _names(model)
        self.graph = fx.Graph()
        self.state: dict[str, torch.Tensor] = {}
        self.sources: dict[str, fx.Node] = {}

    def trace(self, given: int, experts: dict[str, torch.nn.Module]) -> Trace:
        leaves = [self.graph.placeholder(f"batch_{k}") for k in range(given)]
        marks = [n for n in self.exported.graph.nodes if n.op == "placeholder"]
        for mine, n in zip(leaves, marks, strict=True):
            mine.meta["val"] = n.meta.get("val")
        (loss,) = self.inline(self.exported, dict(zip(marks, leaves)), (), "")
        return Trace(self.graph, leaves, self.state, loss, self.names, experts)

    def inline(self, gm: fx.GraphModule, value: dict[fx.Node, Any], context: Context, module: str) -> list[fx.Node]:
        for n in gm.graph.nodes:
            if n.op == "placeholder":
                continue
            if n.op == "output":
                return list(fx.node.map_arg(n.args[0], lambda x: value[x]))
            if n.op == "get_attr":
                held = operator.attrgetter(str(n.target))(gm)
                value[n] = held if isinstance(held, torch.nn.Module) else self.source(str(n.target), held)
                continue
            if n.op == "call_module" or "_assert" in str(n.target) or str(n.target).startswith("aten.sym_constrain"):
                continue  # checks of the batch's shapes, and of types that the trace has
            path, grad = (n.meta.get("custom") or {}).get(KEY, (module, True))
            if isinstance(n.target, torch._ops.HigherOrderOperator):
                inner, args, switched = _region(n, value, path)
                marks = [x for x in inner.graph.nodes if x.op == "placeholder"]
                value[n] = self.inline(inner, dict(zip(marks, args, strict=True)), context + switched, path)
                continue
            args, kwargs = fx.node.map_arg((n.args, n.kwargs), lambda x: value[x])
            if n.target is operator.getitem and isinstance(args[0], (list, tuple)):
                value[n] = args[0][args[1]]
                continue
            made = value[n] = self.graph.create_node("call_function", n.target, args, kwargs)
            made.meta = {"val": n.meta.get("val"), "module": path, "context": context, "grad": grad}
            _check_sizes(made)
        raise AssertionError("a graph without an output")

    def source(self, target: str, held: torch.Tensor) -> fx.Node:
        name = self.first.get(target.removeprefix("model."), f"constants.{target.replace('.', '_')}")
        if name not in self.sources:
            self.sources[name] = self.graph.get_attr(name)
            self.state[name] = operator.attrgetter(name)(self.model) if name in self.first else held
        return self.sources[name]


def _region(n: fx.Node, value: dict[fx.Node, Any], module: str) -> tuple[fx.GraphModule, tuple[Any, ...], tuple[Any, ...]]:
    """Graph, operands and switch of a region that export has as one op."""
    args: Any = fx.node.map_arg(n.args, lambda x: value[x])
    name = getattr(n.target, "__name__", str(n.target))
    if name == "wrap_with_set_grad_enabled":
        return args[1], args[2:], ()
    if name == "wrap_with_autocast":
        return args[4], args[5:], (args[:4],)
    raise StrategyError(f"module {module or 'of the whole model'} cannot be cut into stages: op {name} has code of its own within; take a strategy without pipeline")


def _check_sizes(n: fx.Node) -> None:
    def symbolic(v: Any) -> bool:
        return isinstance(v, (torch.SymInt, torch.SymFloat, torch.SymBool)) or isinstance(v, torch.Tensor) and any(isinstance(s, torch.SymInt) for s in v.shape)

    val = n.meta["val"]
    if any(symbolic(v) for v in (val if isinstance(val, (list, tuple)) else (val,))):
        raise StrategyError(f"module {n.meta['module'] or 'of the whole model'} cannot be cut into stages: op {n.target} makes a number or a shape out of a tensor's values; use a mask, torch.where, or a fixed size")


def tensors(n: fx.Node) -> Iterator[torch.Tensor]:
    """The fake tensors that n makes."""
    val = n.meta.get("val")
    for v in val if isinstance(val, (list, tuple)) else (val,):
        if isinstance(v, torch.Tensor):
            yield v
