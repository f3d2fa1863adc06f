"""Optimizers' updates as ops that change a parameter in place.

Each rule has the bits of torch.optim's single-tensor form: those of SGD and Adam, which most
steps have, do what it does op by op; the others are the class's own (own.py). `t` counts
steps from 1.
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from . import own

Hyper = dict[str, Any]
Rule = Callable[[torch.Tensor, torch.Tensor, list[torch.Tensor], int, Hyper], None]


def sgd(p: torch.Tensor, g: torch.Tensor, slots: list[torch.Tensor], t: int, h: Hyper) -> None:
    """torch.optim.SGD; slots: momentum_buffer, where there is momentum."""
    if h.get("maximize"):
        g = g.neg()
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
    """torch.optim.Adam and AdamW; slots: exp_avg, exp_avg_sq, with amsgrad max_exp_avg_sq."""
    if h.get("maximize"):
        g = g.neg()
    beta1, beta2 = h["betas"]
    if h["weight_decay"]:
        if h["decoupled"]:
            p.mul_(1 - h["lr"] * h["weight_decay"])
        else:
            g = g.add(p, alpha=h["weight_decay"])
    if p.is_complex():  # each part has a second moment of its own
        p, g = (torch.view_as_real(x.resolve_conj()) for x in (p, g))
        slots = [torch.view_as_real(x) for x in slots]
    m, v, *most = slots
    m.lerp_(g, 1 - beta1)
    v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
    if most:
        (highest,) = most
        torch.maximum(highest, v, out=highest)
        v = highest
    size = h["lr"] / (1 - beta1**t)
    denominator = (v.sqrt() / (1 - beta2**t) ** 0.5).add_(h["eps"])
    p.addcdiv_(m, denominator, value=-size)


RULES: dict[str, Rule] = {"sgd": sgd, "adam": adam}


def known(name: str) -> bool:
    """Whether there is a rule of this name."""
    return name in RULES or name in own.NAMES


def rule(name: str) -> Rule:
    """The rule of this name, for one op: it may keep what belongs to its parameter."""
    return RULES[name] if name in RULES else own.Own(name)
