"""Models without random parts: torch and a captured step draw by other seeds."""

from __future__ import annotations

from typing import Any

import torch.nn as nn


def config(c: Any) -> Any:
    """c, of a model of transformers, with every share of dropped units at 0, in configs within it too."""
    for k, v in list(vars(c).items()):
        if "drop" in k and isinstance(v, float):
            setattr(c, k, 0.0)
        elif k.endswith("_config") and hasattr(v, "to_dict"):
            config(v)
    return c


def model(m: nn.Module) -> nn.Module:
    """m, training, whose modules drop nothing."""
    for x in m.modules():
        for k in ("p", "drop_prob") if "drop" in type(x).__name__.lower() or type(x).__name__ == "StochasticDepth" else ():
            if hasattr(x, k):
                setattr(x, k, 0.0)
    return m.train()
