"""Split products of layers whose weight has a row for each input, as transformers' GPT-2 has them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn

import models
import pipelines
import split_models
import strategies
from placer_torch.parallel import distribute
from placer_torch.parallel.errors import StrategyError
from strategies import KINDS, LAYERS, SAMPLES, SIZE, strategy

pytestmark = pytest.mark.forks

GPT2 = KINDS["gpt2"]
PRODUCTS = [f"{GPT2.layers}.{k}.{x}" for k in LAYERS for x in (*GPT2.columns, *GPT2.rows)]
MORE: dict[str, Any] = {"tensor": 2, "transposed": PRODUCTS, "parts": {f"h.{k}.attn.c_attn": (SIZE["width"],) * 3 for k in LAYERS}}


def make() -> models.Example:
    """GPT-2 with its products' weights turned; no two of their sizes are equal by chance."""
    model, loss, batch, _ = GPT2.make()
    for path in PRODUCTS:
        of = model.get_submodule(path)
        turned = split_models.Conv1D(of.in_features, of.out_features).double()
        with torch.no_grad():
            turned.weight.copy_(of.weight.T)
            turned.bias.copy_(of.bias)
        model.set_submodule(path, turned)
    return model, loss, batch, torch.optim.AdamW(model.parameters(), lr=0.01)


def test_training() -> None:
    for more in ({}, {"mb": 2, "recompute": True}, {"vocabulary": True, "sequence": True}):
        (got,) = strategies.run(make, [strategy(GPT2, **MORE, **more)])
        assert got.loss < 1e-8 and got.state < 1e-8, (more, got)
        if not more:
            assert got.calls == {"all_reduce": 4 * len(LAYERS)}
    for sharding in ("ddp", "zero-3"):
        (got,) = strategies.run(make, [strategy(GPT2, **MORE, data=2, sharding=sharding)])
        assert got.loss < 1e-8 and got.state < 1e-8, (sharding, got)


def test_pipeline() -> None:
    columns, rows = ([f"h.{k}.{m}" for k in LAYERS for m in of] for of in (GPT2.columns, GPT2.rows))
    s = pipelines.strategy("1f1b", [["wte", "wpe", "h.0"], ["h.1", "ln_f", "lm_head"]], columns=columns, rows=rows, batch=SAMPLES, **MORE)
    got, want = pipelines.run(make, s), pipelines.plain(make, s)
    assert got.losses == pytest.approx(want.losses, abs=1e-8)
    for k, x in want.state.items():
        torch.testing.assert_close(got.state[k], x, atol=1e-8, rtol=0)


def test_states(tmp_path: Any) -> None:
    """State and optimizer's state of parts go on in one piece each, and the other way round."""
    file = tmp_path / "state.pt"

    def work() -> float:
        model, loss, batch, optimizer = make()
        (m, o), (n, p) = copy.deepcopy((model, optimizer)), copy.deepcopy((model, optimizer))
        a = distribute(m, loss, o, strategy(GPT2, **MORE), device="cpu")
        a.step(batch)
        state = a.state_dict(), a.optimizer_state()
        if dist.get_rank() == 0:
            torch.save(state, file)
        dist.barrier()
        b = distribute(n, loss, p, strategy(GPT2, data=2), device="cpu")
        b.load_state_dict(*torch.load(file))
        half = SAMPLES // 2
        own = tuple(x[b.replica * half : (b.replica + 1) * half] for x in batch)
        a.load_state_dict(*torch.load(file))
        return max(abs(a.step(batch) / b.step(own) - 1) for _ in range(2))

    assert strategies.in_processes(2, work) < 1e-12


class Scaled(split_models.Conv1D):
    """With a number for each column besides."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__(inputs, outputs)
        self.scale = nn.Parameter(torch.ones(outputs))


@pytest.mark.parametrize("layer, words", [
    (nn.Linear(16, 64), "is a Linear: 2 parts of it want a weight with a row for each input"),
    (nn.Conv1d(16, 64, 1), "is a Conv1d: 2 parts"),
    (Scaled(16, 64), "is a Scaled: 2 parts"),
    (split_models.Conv1D(16, 63), "weight.shape[1] 63 is not divisible by 2"),
])  # fmt: skip
def test_refused(layer: nn.Module, words: str) -> None:
    model, loss, _, _ = make()
    model.h[0].mlp.c_fc = layer
    with pytest.raises(StrategyError) as e:
        distribute(model, loss, torch.optim.SGD(model.parameters()), strategy(GPT2, **MORE), device="cpu")
    assert words in str(e.value)


class Apart(split_models.Conv1D):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ (2 * self.weight) + self.bias


def test_a_product_that_a_pipeline_does_not_cut() -> None:
    def changed() -> models.Example:
        model, loss, batch, _ = make()
        model.h[0].mlp.c_fc = Apart(16, 64).double()
        return model, loss, batch, torch.optim.AdamW(model.parameters(), lr=0.01)

    columns, rows = ([f"h.{k}.{m}" for k in LAYERS for m in of] for of in (GPT2.columns, GPT2.rows))
    s = pipelines.strategy("1f1b", [["wte", "wpe", "h.0"], ["h.1", "ln_f", "lm_head"]], columns=columns, rows=rows, batch=SAMPLES, **MORE)
    with pytest.raises(StrategyError, match="module h.0.mlp.c_fc multiplies by its weight in other ways"):
        pipelines.run(changed, s)
