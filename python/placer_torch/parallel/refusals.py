"""What a strategy cannot be applied to, said before anything is changed."""

from __future__ import annotations

import collections
from typing import Iterator

import torch
from torch import nn
from torch.distributed.fsdp import FSDPModule, FullyShardedDataParallel
from torch.distributed.tensor import DTensor

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


def check(model: nn.Module, optimizer: torch.optim.Optimizer, s: Strategy) -> None:
    """Raises StrategyError with module or parameter and reason."""
    if s.recompute == "selective":
        raise StrategyError(f"{s.strategy}: recompute=selective, for which torch has no wrapper of modules: ask for a strategy without it, or with recompute")
    _whole(model)
    _paths(model, s)
    if s.tensor > 1:
        _products(model, s)
        _parts(model, s)
        _tied(model, s)
    if s.data > 1 and s.sharding != "ddp":
        _layers(model, s)
    _optimizer(model, optimizer, s)


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
    lists = {"columns": s.columns, "rows": s.rows, "vocabulary_columns": s.vocabulary_columns, "vocabulary_rows": s.vocabulary_rows, "by_rows": s.by_rows}
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
        kind = next((c for c in (nn.Linear, nn.Embedding) if isinstance(m, c)), None)
        if kind is None:
            raise StrategyError(f"module {path} is a {type(m).__name__}: torch cuts nn.Linear and nn.Embedding alone into {s.tensor}")
        if type(m).forward is not kind.forward:
            raise StrategyError(f"module {path} is a {type(m).__name__} with a forward of its own: torch cuts nn.Linear and nn.Embedding alone into {s.tensor}")
        if kind is nn.Embedding and (m.max_norm is not None or m.sparse):
            raise StrategyError(f"module {path} is an nn.Embedding with {'max_norm' if m.max_norm is not None else 'sparse gradients'}, which torch does not cut into {s.tensor}")
    for path in (*s.columns, *s.rows):
        m = there[path]
        sizes = ("out_features", "in_features") if isinstance(m, nn.Linear) else ("embedding_dim", "num_embeddings")
        name = sizes[0 if path in s.columns else 1]
        if getattr(m, name) % s.tensor:
            raise StrategyError(f"module {path}: {name} {getattr(m, name)} is not divisible by {s.tensor}, the parts of each product")


def _parts(model: nn.Module, s: Strategy) -> None:
    """Columns that are taken apart are those of an nn.Linear of its own, and parts can be cut."""
    there = dict(model.named_modules())
    often = collections.Counter(id(p) for m in model.modules() for p in m._parameters.values() if p is not None)
    for path, sizes in s.parts.items():
        m = there.get(path)
        if path not in s.columns or not isinstance(m, nn.Linear):
            raise StrategyError(f"parts: module {path} is no nn.Linear that is cut by columns")
        if sum(sizes) != m.out_features:
            raise StrategyError(f"module {path}: parts of {list(sizes)} columns, and out_features is {m.out_features}")
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
        for name, _ in there[path].named_parameters():
            made[path, name] = 0 if isinstance(there[path], nn.Linear) else 1
    for path in (*s.rows, *s.vocabulary_rows):
        made[path, "weight"] = 1 if isinstance(there[path], nn.Linear) else 0
    return made


def _tied(model: nn.Module, s: Strategy) -> None:
    """A parameter of several modules is cut in one way."""
    dimension = cuts(model, s)
    first: dict[int, tuple[str, str]] = {}
    for path, m in model.named_modules():
        for name, p in m.named_parameters(recurse=False, remove_duplicate=False):
            one = first.setdefault(id(p), (path, name))
            if dimension.get(one) != dimension.get((path, name)):
                raise StrategyError(f"modules {one[0]} and {path} have the same {name}, and the strategy cuts it in one of them alone or in two ways")


def _layers(model: nn.Module, s: Strategy) -> None:
    """Each parameter has a dimension to be shared out by, and none lies in two of the groups that are gathered."""
    for name, p in model.named_parameters():
        if not p.dim():
            raise StrategyError(f"parameter {name} is a single number, which {s.sharding} cannot share out: take ddp, or make it of shape [1]")
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
    if s.divided and kind not in ELEMENTWISE:
        raise StrategyError(f"optimizer {kind.__name__}: {s.strategy} shares out its state, which is right of optimizers that update each element by itself alone ({', '.join(c.__name__ for c in ELEMENTWISE)}); take ddp")
    if optimizer.state:
        raise StrategyError(f"optimizer {kind.__name__} has made steps: begin with a new one, and load its state by Training.load_state_dict")
    known = {id(p) for p in model.parameters()}
    for p in _parameters(optimizer):
        if id(p) not in known:
            raise StrategyError(f"optimizer {kind.__name__} holds a parameter of shape {list(p.shape)} that the model does not have")


def _parameters(optimizer: torch.optim.Optimizer) -> Iterator[nn.Parameter]:
    for g in optimizer.param_groups:
        yield from g["params"]
