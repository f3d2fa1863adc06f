"""Gradients that processes share out are clipped as torch clips whole ones, over gloo."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import models
import pipelines
import strategies
from placer_torch.clipping import Clip
from placer_torch.errors import PlacerTorchError, RunError
from placer_torch.parallel import distribute
from strategies import KINDS, strategy

pytestmark = pytest.mark.forks

# Everything is float64. SGD, for Adam divides the share out again by which a norm is cut.
CLOSE = 1e-8
CUT = Clip(norm=0.05)
ONE = strategy(KINDS["gpt2"])


def gpt2() -> models.Example:
    """Its head shares the embedding's weight."""
    return sgd(KINDS["gpt2"].make())


def llama() -> models.Example:
    return sgd(KINDS["llama"].make())


def sgd(example: models.Example) -> models.Example:
    model, loss, batch, _ = example
    return model.double(), loss, batch, torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)


def trained(make: Any, clip: Clip, *docs: dict[str, Any]) -> None:
    for doc, got in zip(docs, strategies.run(make, docs, clip=clip), strict=True):
        assert max(got.loss, got.state, got.norm) < CLOSE, (doc["strategy"], clip, got)
        assert clip.norm is None or min(got.norms) > 2 * clip.norm


def test_two_processes() -> None:
    """Replicas with all gradients, with shares of them, and products cut beside whole parameters."""
    of: list[dict[str, Any]] = [{"data": 2, "mb": 2}, {"data": 2, "sharding": "zero-1", "mb": 2}, {"data": 2, "sharding": "zero-2", "mb": 2}, {"tensor": 2, "mb": 2}]
    trained(gpt2, CUT, *(strategy(KINDS["gpt2"], **x) for x in of))


@pytest.mark.parametrize("clip", [CUT, Clip(norm=0.01, type=math.inf), Clip(value=0.002), Clip(norm=0.005, value=0.002, type=3.0)])
def test_ways_to_clip(clip: Clip) -> None:
    of: list[dict[str, Any]] = [{"data": 2, "sharding": "zero-3"}, {"tensor": 2, "vocabulary": True, "sequence": True}]
    trained(gpt2, clip, *(strategy(KINDS["gpt2"], **x) for x in of))


def test_replicas_of_split_products() -> None:
    """Four processes: parameters cut by one dimension of the processes, by the other, by both."""
    of: list[dict[str, Any]] = [{"mb": 2}, {"sharding": "zero-3", "vocabulary": True, "sequence": True}]
    trained(llama, CUT, *(strategy(KINDS["llama"], data=2, tensor=2, **x) for x in of))


def scalar() -> models.Example:
    """A bias of one element, of which the second process has no share."""
    torch.manual_seed(0)
    return sgd((torch.nn.Linear(4, 1), lambda m, x: (m(x) ** 2).mean(), torch.randn(8, 4).double(), None))


def test_empty_shares() -> None:
    trained(scalar, Clip(norm=0.01, type=math.inf), {**strategy(KINDS["gpt2"], "zero-3", 2), "layers": []})


def frozen() -> models.Example:
    """A part that the optimizer does not hold, whose gradients count; a frozen part."""
    model, loss, batch, _ = gpt2()
    model.h[1].requires_grad_(False)
    return model, loss, batch, torch.optim.SGD(model.h.parameters(), lr=0.5)


def test_parameters_that_are_not_updated() -> None:
    trained(frozen, CUT, strategy(KINDS["gpt2"], tensor=2), strategy(KINDS["gpt2"], "zero-2", 2))


def gpt() -> models.Example:
    return sgd(models.gpt2(layers=2, width=16, batch=16, time=8, vocab=20))


def shared() -> models.Example:
    """A weight of three stages, two of them of one process."""
    torch.manual_seed(0)
    m = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(4)))
    m[2].weight = m[3].weight = m[0].weight
    return sgd((m, lambda m, x: (m(x) ** 2).mean(), torch.randn(16, 8).double(), None))


TWO = [["wte", "wpe", "h.0"], ["h.1", "ln_f", "lm_head"]]
PRODUCTS = {"columns": [f"h.{k}.{m}" for k in range(2) for m in ("attn.c_attn", "mlp.c_fc")], "rows": [f"h.{k}.{m}.c_proj" for k in range(2) for m in ("attn", "mlp")]}
VOCABULARY = {"vocabulary": True, "vocabulary_columns": ["lm_head"], "vocabulary_rows": ["wte"]}
PIPELINES: dict[str, tuple[Any, dict[str, Any]]] = {
    "tied": (gpt, pipelines.strategy("gpipe", TWO, micro_batches=2)),
    "tied within a process": (shared, pipelines.strategy("interleaved", [["0"], ["1"], ["2"], ["3"]], ranks=2, micro_batches=2)),
    "shares": (gpt, pipelines.strategy("1f1b", TWO, data=2, sharding="zero-2", micro_batches=2, layers=[["h.0"], ["h.1"]])),
    "data, tensor, pipeline": (gpt, pipelines.strategy("1f1b", TWO, data=2, tensor=2, micro_batches=2, **PRODUCTS, **VOCABULARY)),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines(name: str) -> None:
    make, s = PIPELINES[name]
    got, want = pipelines.run(make, s, clip=CUT), pipelines.plain(make, s, clip=CUT)
    assert min(want.norms) > 2 * (CUT.norm or 0)
    assert got.losses == pytest.approx(want.losses, rel=CLOSE)
    assert len(got.norms) == len(want.norms) == 3
    assert got.norms == pytest.approx(want.norms, rel=CLOSE)
    for k, x in want.state.items():
        torch.testing.assert_close(got.state[k], x, atol=CLOSE, rtol=0, msg=lambda m: f"{k}: {m}")


def test_what_is_refused() -> None:
    model, loss, _, optimizer = gpt2()
    with pytest.raises(PlacerTorchError, match="clip_norm -1: want a number above 0"):
        distribute(model, loss, optimizer, ONE, device="cpu", clip_norm=-1)

    def norm(**clip: float) -> None:
        model, loss, _, optimizer = gpt2()
        distribute(model, loss, optimizer, ONE, device="cpu", **clip).grad_norm()

    with pytest.raises(RunError, match=r"clips no gradients by their norm: distribute\(…, clip_norm=1.0\)"):
        strategies.in_processes(1, norm)
    with pytest.raises(RunError, match="no step was run"):
        strategies.in_processes(1, lambda: norm(clip_norm=1.0))
