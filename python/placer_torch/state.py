"""Values of a program's parameters, buffers, slots, constants and batch."""

from __future__ import annotations

from typing import Iterable

import torch

from . import batches, optim
from .errors import FormatError
from .optim import Optimizers
from .program import STATE, Leaf, Op, Program, Spec
from .wrappers import unwrap

Tensors = dict[str, torch.Tensor]


def of_model(p: Program, model: torch.nn.Module) -> Tensors:
    """Copies of the model's parameters and buffers, and zeroed slots, by op name."""
    model = unwrap(model)
    have = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    known = {p.ops[i].target for i in p.sources("parameter", "buffer")}
    more = [k for k, _ in model.named_parameters() if k not in known]
    if more:
        raise FormatError(f"the model has parameter {more[0]}, which the step does not: the program is another model's")
    return {p.ops[i].name: _source(p.ops[i], have) for i in p.sources(*STATE)}


def of_optimizer(p: Program, model: torch.nn.Module, optimizer: Optimizers) -> tuple[Tensors, int]:
    """Slots by op name with the values that the optimizer's state has, and the steps it
    has made. Raises FormatError where it has made more of some parameters than of others."""
    held = {id(t) for g in optim.groups(optimizer) for t in g["params"]}
    state = {t: of for o in optim.each(optimizer) for t, of in o.state.items()}
    params = dict(unwrap(model).named_parameters())
    found: Tensors = {}
    steps: dict[int, str] = {}
    begun = False
    for o in p.ops:
        if o.role != "update":
            continue
        name = p.ops[o.args[0].op].target
        t = params.get(name)
        if t is None or id(t) not in held:
            raise FormatError(f"the optimizer does not hold the model's parameter {name}, which the step updates")
        has = state.get(t, {})
        slots = {p.ops[r.op].name: has.get(p.ops[r.op].target[len(name) + 1 :]) for r in o.args[2]}
        there = {k: v for k, v in slots.items() if v is not None}
        found.update(there)
        if slots and there and "step" not in has:  # a rule that does not count
            begun = True
        elif slots:
            steps.setdefault(int(has["step"]) if there else 0, name)
    if len(steps) > 1:
        (a, first), (b, other), *_ = steps.items()
        raise FormatError(f"the optimizer has made {a} steps of {first} and {b} of {other}; a loop has one count of steps for all")
    made, name = next(iter(steps.items()), (int(begun), ""))
    if begun and not made:
        raise FormatError(f"the optimizer has made steps of some parameters and none of {name}; a loop has one count of steps for all")
    return found, made


def entries(p: Program, model: torch.nn.Module) -> dict[str, str | None]:
    """The op that holds each entry of the model's state_dict: parameters that are tied have
    one op, what the step does not use has none. A wrapper's entries have its own names."""
    op = {p.ops[i].target: p.ops[i].name for i in p.sources("parameter", "buffer")}
    inner = unwrap(model)
    have = [*inner.named_parameters(), *inner.named_buffers()]
    held = {id(t): op[k] for k, t in have if k in op}
    return {k: held.get(id(t)) for k, t in model.state_dict(keep_vars=True).items()}


def _source(o: Op, have: dict[str, torch.Tensor]) -> torch.Tensor:
    (s,) = o.outputs
    assert s is not None
    t = new(s)
    if o.role == "slot":
        return t.zero_()
    if o.target not in have:
        raise FormatError(f"the model has no {o.role} {o.target}: the program is another model's")
    if have[o.target].is_meta:
        raise FormatError(f"{o.role} {o.target} is on the meta device and has no values: model.to_empty(device='cpu') and initialise it, or run the program without the model, on values that are made up")
    if have[o.target].shape != t.shape or have[o.target].dtype != t.dtype:
        raise FormatError(f"{o.role} {o.target} is {list(have[o.target].shape)} {have[o.target].dtype}, captured as {list(t.shape)} {t.dtype}: capture the model as it is now")
    return t.copy_(have[o.target].detach())


def example(p: Program, seed: int = 0) -> Tensors:
    """State of plausible values, for timing without the model: small normal
    weights, ones for norms' scales, zeros for biases and slots."""
    g = torch.Generator().manual_seed(seed)
    found: Tensors = {}
    for i in p.sources(*STATE):
        o = p.ops[i]
        (s,) = o.outputs
        assert s is not None
        t = new(s).zero_()
        if o.role == "parameter" and len(s.shape) > 1:
            t.copy_(torch.randn(s.shape, generator=g) * (s.shape[-1] ** -0.5))
        elif (o.role == "parameter" and o.name.endswith("weight")) or o.name.endswith("var"):
            t.fill_(1)
        found[o.name] = t
    return found


def batch(p: Program) -> Tensors:
    """The batch that the program was captured with."""
    lacking = [p.ops[i].name for i in p.sources("batch") if p.ops[i].name not in p.batch]
    if lacking:
        raise FormatError(f"the program was captured without values of {lacking[0]}: give a batch")
    return p.batch


def new(s: Spec, device: torch.device | str = "cpu") -> torch.Tensor:
    return torch.empty_strided(s.shape, s.stride, dtype=s.dtype, device=device)


def leaves(p: Program, given: object) -> Tensors:
    """A batch in the form that was captured, as tensors by op name. Its leaves are those
    of the captured one by path, in any order; what is no tensor has to be equal, for it
    is part of the step. Raises FormatError, which names the leaf."""
    have = dict(batches.leaves(given))
    if p.inputs is None:
        tensors = [(path, t) for path, t in have.items() if isinstance(t, torch.Tensor)]
        ops = p.sources("batch")
        if len(tensors) != len(ops):
            raise FormatError(f"the batch has {len(tensors)} tensors, the program {len(ops)}")
        return {p.ops[i].name: _as_captured(p.ops[i], path, t) for i, (path, t) in zip(ops, tensors)}
    known = {x.path for x in p.inputs}
    for path in have:
        if path not in known:
            raise FormatError(f"the captured batch has no {_leaf(path)}; it has {', '.join(_leaf(x.path) for x in p.inputs)}")
    found: Tensors = {}
    for x in p.inputs:
        if x.path not in have:
            raise FormatError(f"the batch has no {_leaf(x.path)}, with which the step was captured")
        if x.op:
            found[x.op] = _as_captured(p.ops[p.by_name[x.op]], x.path, have[x.path])
        else:
            _same_value(x, have[x.path])
    return found


def _as_captured(o: Op, path: str, t: object) -> torch.Tensor:
    """t, which has the shape and type of o, with the strides that the step was captured with."""
    (s,) = o.outputs
    assert s is not None
    if not isinstance(t, torch.Tensor):
        raise FormatError(f"{_leaf(path)} is {t!r}, captured as a tensor of shape {list(s.shape)}")
    if tuple(t.shape) != s.shape or t.dtype != s.dtype:
        raise FormatError(f"{_leaf(path)}: {list(t.shape)} {t.dtype}, captured with {list(s.shape)} {s.dtype}; capture again for another batch, or leave it out (a DataLoader's last one: drop_last=True)")
    if t.is_meta:
        raise FormatError(f"{_leaf(path)} is on the meta device and has no values: give a batch that has")
    if t.layout is not torch.strided:
        raise FormatError(f"{_leaf(path)} is a tensor of layout {t.layout}, captured as a dense one: give t.to_dense()")
    return t.detach() if t.stride() == s.stride else new(s, t.device).copy_(t.detach())


def _same_value(x: Leaf, v: object) -> None:
    if type(v) is type(x.value) and (v == x.value or v != v and x.value != x.value):
        return
    what = f"a tensor of shape {list(v.shape)}" if isinstance(v, torch.Tensor) else repr(v)
    raise FormatError(f"{_leaf(x.path)} is {what}, captured as {x.value!r}, which is part of the step: capture it as a tensor, torch.tensor({x.value!r}), to give another in each step, or capture again")


def _leaf(path: str) -> str:
    return f"batch{path}"


def equal(a: Iterable[torch.Tensor], b: Iterable[torch.Tensor]) -> bool:
    """Whether two lists of tensors have the same bits, NaN equal to NaN."""
    return all(x.shape == y.shape and x.dtype == y.dtype and bool(torch.equal(x, y) or torch.allclose(x, y, rtol=0, atol=0, equal_nan=True)) for x, y in zip(a, b, strict=True))
