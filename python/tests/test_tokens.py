"""Replicas that share tokens out train as plain torch does, in processes over gloo."""

from __future__ import annotations

import functools
from typing import Any, Callable

import pytest
import torch
from torch import nn

import mixtures
import models
import releases
import strategies
from kernels import LAYERS, SAMPLES, VOCABULARY, WIDTH, decoder
from placer_torch.parallel.errors import StrategyError
from strategies import KINDS, Got, strategy

pytestmark = pytest.mark.forks

CLOSE = 1e-8


def shared(replicas: int, context: int, sharding: str = "ddp", **more: Any) -> dict[str, Any]:
    return strategy(KINDS["gpt2"], sharding, replicas, context=context, **{"layers": LAYERS, **more})


def trained(make: Callable[[], models.Example], *docs: dict[str, Any]) -> list[Got]:
    found = strategies.run(make, docs)
    for doc, got in zip(docs, found, strict=True):
        assert got.loss < CLOSE and got.state < CLOSE, (doc["strategy"], got)
    return found


@pytest.mark.parametrize("name", KINDS)
def test_tokens(name: str) -> None:
    """Of attention in single products."""
    kind, more = KINDS[name], {"mb": 2, "recompute": True}
    trained(kind.make, strategy(kind, "ddp", 2, context=2), *(strategy(kind, s, 2, context=2, **more) for s in ("zero-2", "zero-3")))


def test_attention_of_torch() -> None:
    """nn.MultiheadAttention, and products under autocast."""
    trained(strategies.encoder, shared(2, 2, mb=2))
    (got,) = strategies.run(strategies.mixed, [shared(2, 2, "zero-1")])
    assert got.loss < 0.02 and got.state < 0.02


@pytest.mark.parametrize("tokens", (16, 12))
@pytest.mark.parametrize("mask", ("none", "causal", "window"))
def test_kernel(mask: str, tokens: int) -> None:
    """Four replicas have four tokens each, or three, which no half of the queries is of."""
    trained(functools.partial(decoder, mask, tokens), shared(4, 4), shared(4, 2, "zero-1", mb=2), shared(4, 4, "zero-3", mb=4, recompute=True))


def test_collectives_of_tokens() -> None:
    """Keys and values of a layer are gathered in the forward pass and once more in the backward pass,
    where their gradients are scattered; a layer that is computed again gathers them then. Half the
    queries go to another replica and back, and so do their gradients. The loss gathers labels and adds
    up a number of tokens."""
    tokens = 16
    all_kv = SAMPLES * tokens * WIDTH * 8
    once, again, open = trained(functools.partial(decoder, "causal", tokens), shared(2, 2), shared(2, 2, recompute=True)) + trained(functools.partial(decoder, "none", tokens), shared(2, 2))
    labels, positions = SAMPLES * tokens * 8, tokens * WIDTH * 8
    for got in once, open, again:
        assert got.bytes["all_gather"] == 4 * all_kv + labels + positions
        assert got.bytes["reduce_scatter"] == 2 * all_kv
    assert once.bytes["all_to_all"] == 8 * SAMPLES * tokens // 4 * WIDTH * 8
    assert "all_to_all" not in open.calls


@releases.grouped
def test_experts() -> None:
    """Each replica runs all experts on its own rows."""
    paths = ["layers.0.experts", "layers.1.experts"]
    docs = [shared(2, 2, s, experts=of) for s in ("ddp", "zero-3") for of in (paths, [])]
    found = strategies.run(mixtures.chosen, docs)
    for got in found:
        assert got.loss < 1e-4 and got.state < 1e-4  # there are products of groups of rows in float32 alone
    for own, every in (found[:2], found[2:]):
        assert own.bytes["all_gather"] < every.bytes["all_gather"]


def test_blocks_of_experts() -> None:
    """Experts that choose among all tokens of a sample."""
    trained(mixtures.blocks, shared(2, 2, experts=["layers.0.experts", "layers.1.experts"]))


def test_dropout() -> None:
    """Runs, with numbers of its own."""

    def make() -> models.Example:
        model, loss, batch, optimizer = decoder("causal", 16)
        model.layers.append(nn.Dropout(0.1))
        return model, loss, batch, optimizer

    (got,) = strategies.run(make, [shared(2, 2)])
    assert got.loss < 0.1


def test_no_tokens() -> None:
    with pytest.raises(StrategyError, match="no tensor of tokens for 2 replicas"):
        strategies.run(functools.partial(decoder, "none", 15), [shared(2, 2)])


@pytest.mark.parametrize("more, want", (({"tensor": 2}, "without tp"), ({"expert_ranks": 2, "experts": ["h.0"]}, "without ep"), ({"context": 3}, "groups of 3")))
def test_refused(more: dict[str, Any], want: str) -> None:
    with pytest.raises(Exception, match=want):
        strategies.run(KINDS["gpt2"].make, [strategy(KINDS["gpt2"], **{"data": 2, "context": 2, **more})])


def test_recurrence() -> None:
    def make() -> models.Example:
        model = nn.Sequential(nn.Embedding(VOCABULARY, WIDTH), nn.GRU(WIDTH, WIDTH, batch_first=True))
        return model, lambda model, batch: model(batch)[0].mean(), torch.zeros(SAMPLES, 16, dtype=torch.long), torch.optim.SGD(model.parameters())

    with pytest.raises(StrategyError, match="module 1 is an nn.GRU"):
        strategies.run(make, [shared(2, 2, layers=[["1"]])])
