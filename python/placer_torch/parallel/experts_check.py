"""Whether a module's experts can be shared out: it is tried, in one process."""

from __future__ import annotations

import torch
from torch import nn

from ..where import first_line
from . import experts
from .strategy import Strategy


def refused(module: nn.Module, s: Strategy) -> str:
    """Why the experts of a module cannot be shared out, "" where they can."""
    n = experts.number(module)
    if not n:
        other = next((k for k, p in module.named_parameters() if p.dim() < 2), None)
        what = f"has parameter {other} of one dimension" if other else f"has parameters of {_shapes(module)}"
        return f"{what}: experts are shared out of a module whose parameters all have a row, or a matrix, for each expert, and of which the router is no part"
    if n % s.expert_ranks:
        return f"has {n} experts, which {s.expert_ranks} replicas cannot share out evenly"
    if any(True for _ in module.buffers()):
        return f"has buffer {next(module.named_buffers())[0]}: experts with parameters alone are shared out"
    if not experts.understood(module):
        return "is called neither with rows [T, width], the experts [T, k] of each and their weights [T, k], nor with a block of rows for each expert [E, C, width]: its experts cannot be shared out"
    return _tried(module, n, s.expert_ranks)


def _shapes(module: nn.Module) -> str:
    return ", ".join(str(list(p.shape)) for p in list(module.parameters())[:4])


def _tried(module: nn.Module, n: int, ranks: int) -> str:
    """Rows of every width that the weights have are given to the module, and to its parts."""
    widths = list(dict.fromkeys(d for p in module.parameters() for d in p.shape[1:]))
    modes = [(m, m.training) for m in module.modules()]
    why = ""
    module.eval()
    try:
        for width in widths:
            try:
                with torch.no_grad():
                    whole, parts = _results(module, n, ranks, width)
            except Exception as e:  # of another width, or of code that does not know how many experts there are
                why = why or f"does not run on rows of {width} with {n // ranks} of its {n} experts: {first_line(e)}"
                continue
            if whole.shape == parts.shape and _equal(whole, parts):
                return ""
            why = f"makes other results of its experts' parts than of all {n} together: its experts cannot be shared out"
    finally:
        for m, mode in modes:
            m.training = mode
    return why


def _results(module: nn.Module, n: int, ranks: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Of all experts, and of the parts of each process."""
    p = next(module.parameters())
    draw = torch.Generator().manual_seed(0)
    shares = [experts.Share(n, ranks, lambda x, k=k: x.chunk(ranks)[k]) for k in range(ranks)]  # type: ignore[misc]
    if not experts.chosen(module):
        block = torch.randn(n, ranks, width, generator=draw).to(p)
        parts = [experts.run_block(module, x, block.chunk(ranks)[k]) for k, x in enumerate(shares)]
        return type(module).forward(module, block), torch.cat(parts)
    t = 2 * ranks
    rows, of = torch.randn(t, width, generator=draw).to(p), torch.rand(t, n, generator=draw).topk(2).indices.to(p.device)
    weights = torch.rand(t, 2, generator=draw).to(p)
    made = torch.zeros(t, 2, width).to(p)
    for k, x in enumerate(shares):
        at = of // x.own == k
        row, _ = torch.nonzero(at, as_tuple=True)
        made[at] = experts.run(module, x, rows[row], of[at] - k * x.own).to(made)
    return type(module).forward(module, rows, of, weights), (made * weights[..., None]).sum(1)


def _equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    """But for rounding."""
    near = torch.finfo(a.dtype).eps ** 0.5
    return bool((a - b).abs().max() <= near * a.abs().max())
