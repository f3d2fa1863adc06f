"""The releases of torch from which on its own parts run what a strategy has: below these tests of the
strategy fail (docs/distribute.md, Limits)."""

from __future__ import annotations

import torch

from .strategy import Strategy

REPLICAS, PRODUCTS, STAGES, TOKENS = (2, 8), (2, 12), (2, 13), (2, 15)


def release() -> tuple[int, int]:
    """(2, 15) of 2.15.0+cu130."""
    major, minor = torch.__version__.split(".")[:2]
    return int(major), int(minor)


def refused(s: Strategy) -> str:
    """Why this torch does not run s, "" where it does."""
    want, what = REPLICAS, "training by a strategy"
    if s.tensor > 1:
        want, what = PRODUCTS, "tp"
    if s.pipeline > 1:
        want, what = STAGES, "a pipeline"
    if s.context > 1:
        want, what = TOKENS, "cp"
    return "" if release() >= want else f"{what} wants torch {want[0]}.{want[1]} or later, and this is {torch.__version__}"
