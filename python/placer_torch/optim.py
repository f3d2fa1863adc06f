"""Optimizers' updates as ops that change a parameter in place.

Each rule does what torch.optim's single-tensor form does, op by op, so its
results have the same bits. `t` counts steps from 1.
"""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

import torch

from .errors import CaptureError

Hyper = dict[str, Any]


def sgd(p: torch.Tensor, g: torch.Tensor, slots: list[torch.Tensor], t: int, h: Hyper) -> None:
    """torch.optim.SGD; slots: momentum_buffer, where there is momentum."""
    if h["weight_decay"]:
        g = g.add(p, alpha=h["weight_decay"])
    if h["momentum"]:
        (m,) = slots
        if t == 1:
            m.copy_(g)
        else:
            m.mul_(h["momentum"]).add_(g, alpha=1 - h["dampening"])
        g = g.add(m, alpha=h["momentum"]) if h["nesterov"] else m
    p.add_(g, alpha=-h["lr"])


def adam(p: torch.Tensor, g: torch.Tensor, slots: list[torch.Tensor], t: int, h: Hyper) -> None:
    """torch.optim.Adam and AdamW; slots: exp_avg, exp_avg_sq."""
    m, v = slots
    beta1, beta2 = h["betas"]
    if h["weight_decay"]:
        if h["decoupled"]:
            p.mul_(1 - h["lr"] * h["weight_decay"])
        else:
            g = g.add(p, alpha=h["weight_decay"])
    if p.is_complex():  # each part has a second moment of its own
        p, g, m, v = (torch.view_as_real(x.resolve_conj()) for x in (p, g, m, v))
    m.lerp_(g, 1 - beta1)
    v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
    size = h["lr"] / (1 - beta1**t)
    denominator = (v.sqrt() / (1 - beta2**t) ** 0.5).add_(h["eps"])
    p.addcdiv_(m, denominator, value=-size)


def passes(rule: str, h: Hyper) -> int:
    """How many tensors of the parameter's size the rule's kernels read or write, one
    kernel for each operation above."""
    decay = bool(h["weight_decay"])
    if rule == "adam":  # lerp 3, mul 2, addcmul 3, sqrt 2, div 2, add 2, addcdiv 4
        return 18 + decay * (2 if h["decoupled"] else 3)
    momentum = bool(h["momentum"])
    return 3 + 3 * decay + momentum * (5 + 3 * bool(h["nesterov"]))  # add 3; mul 2, add 3, add 3


RULES: dict[str, Callable[..., None]] = {"sgd": sgd, "adam": adam}


class Update(NamedTuple):
    """How one parameter is updated; of hyper, `group` is the index of its parameter group."""

    rule: str
    slots: tuple[str, ...]
    hyper: Hyper


def updates(optimizer: torch.optim.Optimizer) -> dict[int, Update]:
    """By id of the parameter, its update under the optimizer."""
    found: dict[int, Update] = {}
    if optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks:
        raise CaptureError(f"optimizer {type(optimizer).__name__} has hooks of its step, which a captured step does not run: remove them, and do between the steps of a loop what they do")
    for k, group in enumerate(optimizer.param_groups):
        u = _update(optimizer, group)
        u.hyper["group"] = k
        if "max_momentum" in group:  # OneCycleLR and CyclicLR leave it there
            u.hyper["cycled"] = True
        found.update((id(p), u) for p in group["params"])
    return found


def in_use(optimizer: torch.optim.Optimizer) -> bool:
    """Whether it has made steps that left something in its state."""
    return any(isinstance(v, torch.Tensor) for of in optimizer.state.values() for v in of.values())


def _update(optimizer: torch.optim.Optimizer, g: dict[str, Any]) -> Update:
    name = type(optimizer).__name__
    for flag in ("maximize", "amsgrad", "differentiable"):
        if g.get(flag):
            raise CaptureError(f"optimizer {name} with {flag}=True is not captured: capture takes SGD (momentum, nesterov), Adam and AdamW without it")
    for k in ("lr", "momentum", "betas", "weight_decay", "eps"):
        has = g.get(k)
        if any(isinstance(x, torch.Tensor) for x in (has if isinstance(has, (tuple, list)) else [has])):
            raise CaptureError(f"optimizer {name}: {k} is a tensor; give a number")
    if type(optimizer) is torch.optim.SGD:
        h = {k: g[k] for k in ("lr", "momentum", "dampening", "weight_decay", "nesterov")}
        if h["momentum"]:
            return Update("sgd", ("momentum_buffer",), h)
        return Update("sgd", (), h)
    if type(optimizer) in (torch.optim.Adam, torch.optim.AdamW):
        h = {k: g[k] for k in ("lr", "betas", "eps", "weight_decay")}
        h["decoupled"] = type(optimizer) is torch.optim.AdamW or bool(g.get("decoupled_weight_decay"))
        return Update("adam", ("exp_avg", "exp_avg_sq"), h)
    raise CaptureError(f"optimizer {name} is not captured: capture takes torch.optim's SGD, Adam and AdamW")
