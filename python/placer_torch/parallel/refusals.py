"""What a strategy cannot be applied to, said before anything is changed."""

from __future__ import annotations

import collections
from typing import Iterator

import torch
from torch import nn
from torch.distributed.fsdp import FSDPModule, FullyShardedDataParallel
from torch.distributed.tensor import DTensor

from ..optim import Optimizers, each, in_use
from . import attention, experts_check, products, versions
from .errors import StrategyError
from .strategy import Paths, Strategy

# Optimizers that update each element by its own gradient and state alone: a share of a
# parameter is updated as the whole would be.
ELEMENTWISE = (
    torch.optim.ASGD,
    torch.optim.Adadelta,
    torch.optim.Adagrad,
    torch.optim.Adam,
    torch.optim.AdamW,
    torch.optim.Adamax,
    torch.optim.NAdam,
    torch.optim.RAdam,
    torch.optim.RMSprop,
    torch.optim.Rprop,
    torch.optim.SGD,
)


def check(model: nn.Module, optimizers: Optimizers, s: Strategy) -> None:
    """Raises StrategyError with module or parameter and reason."""
    old = versions.refused(s)
    if old:
        raise StrategyError(f"{s.strategy}: {old}")
    if s.recompute == "selective":
        raise StrategyError(f"{s.strategy}: recompute=selective, for which torch has no wrapper of modules: ask for a strategy without it, or with recompute")
    _whole(model)
    _paths(model, s)
    if s.tensor > 1:
        _products(model, s)
        _parts(model, s)
        _tied(model, s)
    if s.context > 1:
        _tokens(model, s)
    if s.expert_ranks > 1:
        _experts(model, s)
    if s.data > 1 and s.sharding != "ddp":
        _layers(model, s)
    for optimizer in each(optimizers):
        _optimizer(model, optimizer, s)
    _held_once(optimizers)


def _whole(model: nn.Module) -> None:
    if isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel, FullyShardedDataParallel)) or hasattr(model, "_orig_mod"):
        raise StrategyError(f"the model is wrapped by {type(model).__name__}: give the model within")
    for k, m in model.named_modules():
        if isinstance(m, FSDPModule):
            raise StrategyError(f"module {k or 'of the model'} is sharded already: give the model as it was")
    for k, p in model.named_parameters():
        if isinstance(p, DTensor):
            raise StrategyError(f"parameter {k} is a DTensor already: give the model as it was")
        if p.is_meta:
            raise StrategyError(f"parameter {k} is on the meta device, without values: load the model first")


def _paths(model: nn.Module, s: Strategy) -> None:
    there = dict(model.named_modules())
    lists = {"columns": s.columns, "rows": s.rows, "vocabulary_columns": s.vocabulary_columns, "vocabulary_rows": s.vocabulary_rows, "by_rows": s.by_rows, "experts": s.experts}
    lists |= {f"layers[{i}]": x for i, x in enumerate(s.layers)} | {f"stages[{i}]": x for i, x in enumerate(s.stages)}
    for key, paths in lists.items():
        for path in paths:
            if path not in there:
                raise StrategyError(f"{key}: the model has no module {path!r}; the strategy is of graph {s.graph or '(no name)'}")
    for path in (p for layer in s.layers for p in layer):
        if isinstance(there[path], (nn.ModuleList, nn.ModuleDict)) and s.recompute == "layers" and s.pipeline == 1:
            raise StrategyError(f"layers: module {path} is a {type(there[path]).__name__}, which is never called, so that it cannot be computed again: take a strategy without recompute, or give the layer a module with a forward")


def _products(model: nn.Module, s: Strategy) -> None:
    there = dict(model.named_modules())
    for path in (*s.columns, *s.rows, *s.vocabulary_columns, *s.vocabulary_rows):
        m = there[path]
        if isinstance(m, nn.MultiheadAttention):
            _attention(path, m, s)
            continue
        if path in s.transposed:
            if not products.transposed(m):
                raise StrategyError(f"module {path} is a {type(m).__name__}: {s.tensor} parts of it want a weight with a row for each input, a bias, and nothing else")
            continue
        kind = next((c for c in (nn.Linear, nn.Embedding) if isinstance(m, c)), None)
        if kind is None:
            raise StrategyError(f"module {path} is a {type(m).__name__}: torch cuts nn.Linear and nn.Embedding alone into {s.tensor}")
        buffers = m.named_buffers() if kind is nn.Linear else ()  # as scales of a quantised weight
        own = [k for k, _ in (*m.named_parameters(), *buffers) if k not in ("weight", "bias")]
        if own or not m.weight.is_floating_point():
            raise StrategyError(f"module {path} is a {type(m).__name__} with {own[0] if own else f'a weight of {m.weight.dtype}'}: torch cuts nn.Linear and nn.Embedding alone into {s.tensor}")
        if kind is nn.Embedding and (m.max_norm is not None or m.sparse):
            raise StrategyError(f"module {path} is an nn.Embedding with {'max_norm' if m.max_norm is not None else 'sparse gradients'}, which torch does not cut into {s.tensor}")
    for path in (*s.columns, *s.rows):
        name, size = products.size(there[path], path in s.columns)
        if size % s.tensor:
            raise StrategyError(f"module {path}: {name} {size} is not divisible by {s.tensor}, the parts of each product")


def _attention(path: str, m: nn.MultiheadAttention, s: Strategy) -> None:
    why = attention.refused(m, s.tensor)
    if not why and (path not in s.columns or s.parts.get(path) != attention.sizes(m) or f"{path}.out_proj" not in s.rows):
        why = f"is an nn.MultiheadAttention, of which columns, parts of {list(attention.sizes(m))} columns, and rows of its out_proj are cut, or nothing"
    if not why and s.pipeline > 1:
        why = "is an nn.MultiheadAttention, which is not cut in a pipeline: take a strategy without tp, or without stages"
    if why:
        raise StrategyError(f"module {path} {why}")


def _parts(model: nn.Module, s: Strategy) -> None:
    """Columns that are taken apart are those of a layer of its own, and parts can be cut."""
    there = dict(model.named_modules())
    often = collections.Counter(id(p) for m in model.modules() for p in m._parameters.values() if p is not None)
    for path, sizes in s.parts.items():
        m = there.get(path)
        if path not in s.columns or m is None or isinstance(m, nn.Embedding):
            raise StrategyError(f"parts: module {path} is no linear layer that is cut by columns")
        name, columns = products.size(m, True)
        if sum(sizes) != columns:
            raise StrategyError(f"module {path}: parts of {list(sizes)} columns, and {name} is {columns}")
        for size in sizes:
            if size % s.tensor:
                raise StrategyError(f"module {path}: a part of {size} columns is not divisible by {s.tensor}, the parts of each product")
        if any(often[id(p)] > 1 for p in m.parameters()):
            raise StrategyError(f"module {path} has a parameter of another module too, and the strategy cuts parts of its columns by themselves")


def cuts(model: nn.Module, s: Strategy) -> dict[tuple[str, str], int]:
    """The dimension by which parameters are cut, by module path and name."""
    there = dict(model.named_modules())
    made: dict[tuple[str, str], int] = {}
    for path in (*s.columns, *s.vocabulary_columns):
        for name, _ in there[path].named_parameters(recurse=False):
            made[path, name] = products.dimension(there[path], name)
    for path in (*s.rows, *s.vocabulary_rows):
        made[path, "weight"] = 1 - products.dimension(there[path], "weight")
    return made


def _tied(model: nn.Module, s: Strategy) -> None:
    """A parameter of several products is cut in one way. What else holds it, as BERT's head the
    bias of its product, has it as that is cut."""
    dimension = cuts(model, s)
    first: dict[int, tuple[str, str]] = {}
    for path, m in model.named_modules():
        if not isinstance(m, (nn.Linear, nn.Embedding)) and not any(where == path for where, _ in dimension):
            continue
        for name, p in m.named_parameters(recurse=False, remove_duplicate=False):
            one = first.setdefault(id(p), (path, name))
            if dimension.get(one) != dimension.get((path, name)):
                raise StrategyError(f"modules {one[0]} and {path} have the same {name}, and the strategy cuts it in one of them alone or in two ways")


def _tokens(model: nn.Module, s: Strategy) -> None:
    for other, there in (("tp", s.tensor > 1), ("ep", s.expert_ranks > 1), ("stages", s.pipeline > 1)):
        if there:
            raise StrategyError(f"{s.strategy}: replicas share tokens out where nothing but samples is divided otherwise: take a strategy without {other}, or without cp")
    for path, m in model.named_modules():
        if isinstance(m, nn.RNNBase):
            raise StrategyError(f"module {path} is an nn.{type(m).__name__}, whose tokens follow from each other, so that replicas cannot share them out")


def _experts(model: nn.Module, s: Strategy) -> None:
    if s.tensor > 1:
        raise StrategyError(f"{s.strategy}: experts are shared out where products are whole alone: take a strategy without tp, or without ep")
    there = dict(model.named_modules())
    often = collections.Counter(id(p) for m in model.modules() for p in m._parameters.values() if p is not None)
    for path in s.experts:
        why = experts_check.refused(there[path], s)
        if not why and any(often[id(p)] > 1 for p in there[path].parameters()):
            why = "has a parameter of another module too, so that its experts cannot be shared out"
        if why:
            raise StrategyError(f"module {path} {why}")


def _layers(model: nn.Module, s: Strategy) -> None:
    """No parameter lies in two of the groups that are gathered."""
    owner: dict[int, str] = {}
    there = dict(model.named_modules())
    for path in (p for layer in s.layers for p in layer):
        for p in there[path].parameters():
            other = owner.setdefault(id(p), path)
            if other != path:
                raise StrategyError(f"layers {other} and {path} share a parameter, which {s.sharding} would share out twice")
    inside: Paths = tuple(p for layer in s.layers for p in layer)
    for name, p in model.named_parameters(remove_duplicate=False):
        if id(p) in owner and not any(name.startswith(f"{path}.") for path in inside):
            raise StrategyError(f"parameter {name} is one of layer {owner[id(p)]} too, which {s.sharding} gathers for that layer alone")


def _optimizer(model: nn.Module, optimizer: torch.optim.Optimizer, s: Strategy) -> None:
    kind = type(optimizer)
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise StrategyError(f"the optimizer is of type {kind.__name__}: give one of torch.optim, or a list of them")
    if s.divided and kind not in ELEMENTWISE:
        raise StrategyError(f"optimizer {kind.__name__}: {s.strategy} shares out its state, which is right of optimizers that update each element by itself alone ({', '.join(c.__name__ for c in ELEMENTWISE)}); take ddp")
    if s.divided and kind not in (torch.optim.Adam, torch.optim.AdamW) and any(g.get("fused") for g in optimizer.param_groups):
        raise StrategyError(f"optimizer {kind.__name__} with fused=True: {s.strategy} shares parameters out, whose fused update torch has for Adam and AdamW alone: leave fused out")
    mixed = s.data > 1 and s.sharding == "ddp" and s.expert_ranks > 1
    for how in ("foreach", "fused") if mixed else ():
        if any(g.get(how) for g in optimizer.param_groups):
            raise StrategyError(f"optimizer {kind.__name__} with {how}=True updates tensors of one kind together, and {s.strategy} has two, experts that are shared out and parameters that are not: leave {how} out, or take zero-1")
    if in_use(optimizer):
        raise StrategyError(f"optimizer {kind.__name__} has made steps: begin with a new one, and load its state by Training.load_state_dict")
    known = {id(p) for p in model.parameters()}
    for p in _parameters(optimizer):
        if id(p) not in known:
            raise StrategyError(f"optimizer {kind.__name__} holds a parameter of shape {list(p.shape)} that the model does not have")


def _held_once(optimizers: Optimizers) -> None:
    found: set[int] = set()
    for p in (p for o in each(optimizers) for p in _parameters(o)):
        if id(p) in found:
            raise StrategyError(f"two optimizers hold a parameter of shape {list(p.shape)}: a step has one update of each")
        found.add(id(p))


def _parameters(optimizer: torch.optim.Optimizer) -> Iterator[nn.Parameter]:
    for g in optimizer.param_groups:
        yield from g["params"]
