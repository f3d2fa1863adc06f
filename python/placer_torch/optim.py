"""What a torch optimizer does to each parameter, as ops of a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from . import own
from .errors import CaptureError
from .program import Spec
from .rules import Hyper
from .wrappers import unwrap_optimizer


class Update(NamedTuple):
    """How one parameter is updated; of hyper, `group` is the index of its parameter group."""

    rule: str
    slots: dict[str, Spec]
    hyper: Hyper


# One optimizer, or several that hold different parameters, as Muon of the matrices beside
# AdamW of all else. Their parameter groups are counted through.
Optimizers = torch.optim.Optimizer | Sequence[torch.optim.Optimizer]


def each(optimizers: Optimizers) -> list[torch.optim.Optimizer]:
    return [unwrap_optimizer(o) for o in (optimizers if isinstance(optimizers, (list, tuple)) else [optimizers])]


def groups(optimizers: Optimizers) -> list[dict[str, Any]]:
    """The parameter groups."""
    return [g for o in each(optimizers) for g in o.param_groups]


def updates(optimizers: Optimizers) -> dict[int, Update]:
    """By id of the parameter, its update."""
    found: dict[int, Update] = {}
    for o in each(optimizers):
        if not isinstance(o, torch.optim.Optimizer):
            raise CaptureError(f"the optimizer is of type {type(o).__name__}: give one of torch.optim, or a list of them")
        if any(getattr(o, k, None) for k in ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")):  # wrappers have neither
            raise CaptureError(f"optimizer {type(o).__name__} has hooks of its step, which a captured step does not run: remove them, and do between the steps of a loop what they do")
    for k, (o, group) in enumerate((o, g) for o in each(optimizers) for g in o.param_groups):
        if any(id(p) in found for p in group["params"]):
            raise CaptureError(f"two optimizers hold a parameter of shape {list(next(p for p in group['params'] if id(p) in found).shape)}: a step has one update of each")
        name, h = _rule(o, group)
        h["group"] = k
        if "max_momentum" in group:  # OneCycleLR and CyclicLR leave it there
            h["cycled"] = True
        found.update((id(p), Update(name, _slots(name, p, h), h)) for p in group["params"])
    return found


def in_use(optimizers: Optimizers) -> bool:
    """Whether they have made steps that left something in their state."""
    return any(bool(of["step"]) if "step" in of else any(isinstance(v, torch.Tensor) for v in of.values()) for o in each(optimizers) for of in o.state.values())


def _rule(optimizer: torch.optim.Optimizer, g: dict[str, Any]) -> tuple[str, Hyper]:
    name = type(optimizer).__name__
    if g.get("differentiable"):
        raise CaptureError(f"optimizer {name} with differentiable=True is not captured: make it without, which computes the same update")
    for k in ("lr", "momentum", "betas", "weight_decay", "eps"):
        has = g.get(k)
        if any(isinstance(x, torch.Tensor) for x in (has if isinstance(has, (tuple, list)) else [has])):
            raise CaptureError(f"optimizer {name}: {k} is a tensor; give a number")
    if type(optimizer) is torch.optim.SGD:
        return "sgd", {k: g[k] for k in ("lr", "momentum", "dampening", "weight_decay", "nesterov", "maximize")}
    if type(optimizer) in (torch.optim.Adam, torch.optim.AdamW):
        h = {k: g[k] for k in ("lr", "betas", "eps", "weight_decay", "amsgrad", "maximize")}
        h["decoupled"] = type(optimizer) is torch.optim.AdamW or bool(g.get("decoupled_weight_decay"))
        return "adam", h
    if name in own.NAMES and type(optimizer) is getattr(torch.optim, name, None):
        return name, {k: g[k] for k in own.keys(name)}
    raise CaptureError(
        f"optimizer {type(optimizer).__module__}.{name} is not captured: capture takes torch.optim's SGD, Adam, AdamW, {', '.join(sorted(own.NAMES, key=str.lower))}. "
        "With another, capture without an optimizer, and give it loop.gradients() in each step"
    )


def _slots(name: str, p: torch.Tensor, h: Hyper) -> dict[str, Spec]:
    if name in own.NAMES:
        return {k: Spec(tuple(t.shape), tuple(t.stride()), t.dtype) for k, t in own.slots(name, p, h).items()}
    like = Spec(tuple(p.shape), tuple(p.stride()), p.dtype).apart
    if name == "sgd":
        return {"momentum_buffer": like} if h["momentum"] else {}
    return dict.fromkeys(("exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if h["amsgrad"] else [])), like)
