"""Gradients clipped by value or by the norm of all, as torch.nn.utils does behind the backward pass."""

from __future__ import annotations

from typing import Callable, Iterable, NamedTuple

import torch

from .errors import PlacerTorchError


class Clip(NamedTuple):
    """value: each element lies within -value and value behind it (clip_grad_value_). norm:
    the norm of all gradients together, of this type, is no larger behind it
    (clip_grad_norm_); by value comes first. None: not clipped."""

    norm: float | None = None
    value: float | None = None
    type: float = 2.0

    def checked(self, error: Callable[[str], PlacerTorchError]) -> Clip:
        """Itself, or raises such an error."""
        for k, x in (("clip_norm", self.norm), ("clip_value", self.value), ("norm_type", self.type)):
            if x is not None and not (isinstance(x, (int, float)) and x > 0):
                raise error(f"{k} {x!r}: want a number above 0" + ("" if k == "norm_type" else ", or None to clip nothing"))
        return self

    def __bool__(self) -> bool:
        return self.norm is not None or self.value is not None

    # One after another these have the bits of torch's functions with foreach=False.

    def by_value(self, g: torch.Tensor) -> torch.Tensor:
        return g if self.value is None else g.clamp(min=-self.value, max=self.value)

    def norm_of(self, g: torch.Tensor) -> torch.Tensor:
        n: torch.Tensor = torch.linalg.vector_norm(g, float(self.type))
        return n

    def share(self, total: torch.Tensor) -> torch.Tensor:
        """What each gradient is multiplied by; total: the norm of all norms."""
        assert self.norm is not None
        return torch.clamp(float(self.norm) / (total + 1e-6), max=1.0)

    def eager(self, params: Iterable[torch.Tensor]) -> torch.Tensor | None:
        """Of what a backward pass has left in the parameters. Returns the norm that it was clipped by."""
        own = list(params)
        if self.value is not None:
            torch.nn.utils.clip_grad_value_(own, self.value)
        if self.norm is None:
            return None
        return torch.nn.utils.clip_grad_norm_(own, self.norm, self.type)
