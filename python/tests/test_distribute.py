"""Strategies train as plain torch does, in processes over gloo."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import pytest
import torch
import torch.distributed as dist

import models
import strategies
from placer_torch.clipping import Clip
from placer_torch.parallel import distribute, micro
from strategies import KINDS, LAYERS, SAMPLES, SIZE, TIME, VOCABULARY, Got, Kind, strategy

pytestmark = pytest.mark.forks

# Losses and weights are float64; AdamW divides by the root of squares, which are small.
CLOSE = 1e-8


def trained(name: str, *of: dict[str, Any]) -> list[Got]:
    kind = KINDS[name]
    docs = [strategy(kind, **x) for x in of]
    found = strategies.run(kind.make, docs)
    for doc, got in zip(docs, found, strict=True):
        assert got.loss < CLOSE and got.state < CLOSE, (name, doc["strategy"], got)
    return found


@pytest.mark.parametrize("name", KINDS)
def test_replicas(name: str) -> None:
    """ddp, and each kind of shares, with whole batches and with micro-batches that are computed again."""
    more: list[dict[str, Any]] = [{}, {"mb": 2, "recompute": True}]
    trained(name, *({"sharding": s, "data": 2, **x} for s in ("ddp", "zero-1", "zero-2", "zero-3") for x in more))


@pytest.mark.parametrize("name", KINDS)
def test_split_products(name: str) -> None:
    trained(name, *({"tensor": 2, **x} for x in ({"mb": 2, "recompute": True}, {"vocabulary": True, "mb": 2}, {"vocabulary": True, "sequence": True, "recompute": True}, {"sequence": True})))


class Own(torch.nn.Linear):
    """As transformers' FalconLinear has its forward."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight.T + self.bias


def test_linear_layers_with_a_forward_of_their_own() -> None:
    kind = KINDS["gpt2"]

    def make() -> models.Example:
        model, loss, batch, _ = kind.make()
        for m in model.modules():
            if isinstance(m, torch.nn.Linear) and m.bias is not None:
                m.__class__ = Own
        return model, loss, batch, torch.optim.AdamW(model.parameters(), lr=0.01)

    (got,) = strategies.run(make, [strategy(kind, tensor=2)])
    assert got.loss < CLOSE and got.state < CLOSE


def tempered() -> models.Example:
    """Scores divided by a temperature, which is learned."""
    model, _, batch, _ = KINDS["gpt2"].make()
    model.register_parameter("temperature", torch.nn.Parameter(torch.tensor(2.0, dtype=torch.float64)))
    model.h[0].ln_1.register_parameter("gain", torch.nn.Parameter(torch.tensor(0.5, dtype=torch.float64)))
    model.h[0].ln_1.register_forward_hook(lambda m, given, y: y * m.gain)
    model.register_forward_hook(lambda m, given, y: y / m.temperature)
    return model, models.cross_entropy, batch, torch.optim.AdamW(model.parameters(), lr=0.01)


def test_single_numbers() -> None:
    """Which replicas do not share out."""
    kind = KINDS["gpt2"]
    more: list[dict[str, Any]] = [{"data": 2, "sharding": s, "mb": 2} for s in ("ddp", "zero-1", "zero-2", "zero-3")]
    for got in strategies.run(tempered, [strategy(kind, **x) for x in more], clip=Clip(0.1)):
        assert got.loss < CLOSE and got.state < CLOSE and got.norm < CLOSE
    (got,) = strategies.run(tempered, [strategy(kind, tensor=2, data=2, sharding="zero-1", mb=2)])
    assert got.loss < CLOSE and got.state < CLOSE


@pytest.mark.parametrize("name", KINDS)
def test_replicas_of_split_products(name: str) -> None:
    """Four processes. What differs from two is how shares of cut parameters are made."""
    trained(name, *({"data": 2, "tensor": 2, **x} for x in ({"sharding": "ddp", "mb": 2}, {"sharding": "zero-3", "vocabulary": True, "sequence": True, "mb": 2, "recompute": True})))


ACTIVATION = SAMPLES * TIME * SIZE["width"] * 8  # bytes
LOSS = SAMPLES * TIME * 8  # a number a token


def test_collectives_of_split_products() -> None:
    """Megatron-LM's: a layer all-reduces two activations in the forward pass and two gradients
    in the backward pass (arXiv:1909.08053, section 3); with sequences split these are as many
    all-gathers and reduce-scatters, and gradients gather both again (arXiv:2205.05198, section
    4.2.2). Vocabulary: the table's result, the gradient of the output layer's input, and three
    numbers a token in the cross entropy."""
    plain, sequence = trained("llama", {"tensor": 2}, {"tensor": 2, "vocabulary": True, "sequence": True})
    layer = 4 * len(LAYERS)
    assert plain.calls == {"all_reduce": layer}
    assert plain.bytes == {"all_reduce": layer * ACTIVATION}
    norms = 2 * len(LAYERS) + 1
    # DTensor keeps the gathered input for the gradients, so it is not gathered again.
    assert sequence.calls == {"all_gather": layer + 2, "reduce_scatter": layer + 2, "all_reduce": 3 + norms}
    assert sequence.bytes == {"all_gather": (layer + 2) * ACTIVATION, "reduce_scatter": (layer + 2) * ACTIVATION, "all_reduce": 3 * LOSS + norms * SIZE["width"] * 8}


def test_collectives_of_shares() -> None:
    """zero-1 gathers parameters once and reduces gradients once a step; zero-2 reduces them
    behind each micro-batch; zero-3 gathers its layers for each pass (arXiv:1910.02054, section
    7: twice the parameters gathered, once reduced)."""
    kind = KINDS["llama"]
    total = sum(p.numel() for p in kind.make()[0].parameters()) * 8
    layers = sum(p.numel() for p in kind.make()[0].layers.parameters()) * 8
    one, two, three = trained("llama", *({"sharding": s, "data": 2, "mb": 2} for s in ("zero-1", "zero-2", "zero-3")))
    groups = len(LAYERS) + 1
    assert (one.calls["all_gather"], one.calls["reduce_scatter"]) == (groups, groups)
    assert (one.bytes["all_gather"], one.bytes["reduce_scatter"]) == (total, total)
    assert (two.calls["all_gather"], two.bytes["reduce_scatter"]) == (groups, 2 * total)
    # The root's parameters stay from the forward to the backward pass.
    assert three.bytes["all_gather"] == 2 * (2 * layers + total - layers)
    assert three.bytes["reduce_scatter"] == 2 * total
    assert VOCABULARY * SIZE["width"] * 8 * 2 + SIZE["width"] * 8 == total - layers


def compiled() -> models.Example:
    """Layers that torch.compile wraps, whose names have a part of its own."""
    model, loss, batch, optimizer = KINDS["gpt2"].make()
    for k, layer in enumerate(model.h):
        model.h[k] = torch.compile(layer, backend="eager")
    return model, loss, batch, optimizer


COMPILED = Kind(compiled, "h", ("_orig_mod.attn.c_attn", "_orig_mod.mlp.c_fc"), ("_orig_mod.attn.c_proj", "_orig_mod.mlp.c_proj"), "wte")


@pytest.mark.parametrize("mb", (1, 2))
def test_one_copy_of_gradients(mb: int) -> None:
    """Replicas' gradients are in the buckets that are reduced, also between micro-batches."""
    kind = KINDS["gpt2"]

    def work() -> list[set[int]]:
        model, loss, batch, optimizer = kind.make()
        seen: list[set[int]] = []

        def held(m: Any, part: Any) -> torch.Tensor:
            seen.append({p.grad.untyped_storage().data_ptr() for p in model.parameters() if p.grad is not None})
            return loss(m, part)

        t = distribute(model, held, optimizer, strategy(kind, data=2, mb=mb), device="cpu")
        for _ in range(5):
            t.step(micro.part(batch, t.replica, 2))
        return [*seen[-2 * mb :], {p.grad.untyped_storage().data_ptr() for p in model.parameters() if p.grad is not None}]

    *during, behind = strategies.in_processes(2, work)
    assert len(behind) == 1, "all of a small model are in one bucket"
    assert during == ([set()] * 2 if mb == 1 else [behind] * 4)


def several() -> models.Example:
    """An optimizer of matrices beside one of all else."""
    model, loss, batch, _ = KINDS["gpt2"].make()
    matrices, rest = ([p for p in model.parameters() if (p.dim() == 2) is two] for two in (True, False))
    return model, loss, batch, [torch.optim.SGD(matrices, lr=0.1, momentum=0.9), torch.optim.AdamW(rest, lr=0.01)]


SEVERAL = dataclasses.replace(KINDS["gpt2"], make=several)


def test_several_optimizers() -> None:
    of: list[dict[str, Any]] = [{"data": 2}, {"data": 2, "sharding": "zero-3", "mb": 2}, {"tensor": 2}]
    for got in strategies.run(several, [strategy(SEVERAL, **x) for x in of]):
        assert got.loss < CLOSE and got.state < CLOSE


def test_compiled_layers() -> None:
    of: list[dict[str, Any]] = [{"data": 2}, {"data": 2, "sharding": "zero-3"}, {"data": 2, "sharding": "zero-3", "mb": 2, "recompute": True}, {"tensor": 2, "recompute": True}]
    for got in strategies.run(compiled, [strategy(COMPILED, **x) for x in of]):
        assert got.loss < CLOSE and got.state < CLOSE


@pytest.mark.parametrize("kind", (KINDS["gpt2"], COMPILED, SEVERAL), ids=("gpt2", "compiled", "several"))
def test_checkpoints_are_of_any_strategy(kind: Kind, tmp_path: Any) -> None:
    """A state of one strategy goes on under another as if nothing had been."""
    file = tmp_path / "state.pt"

    def work() -> float:
        model, loss, batch, optimizer = kind.make()
        (m, o), (n, p) = copy.deepcopy((model, optimizer)), copy.deepcopy((model, optimizer))
        a = distribute(m, loss, o, strategy(kind, "zero-3", 2), device="cpu")
        own = micro.part(batch, a.replica, 2)
        a.step(own)
        state = a.state_dict(), a.optimizer_state()
        if dist.get_rank() == 0:
            assert list(state[0]) == list(model.state_dict())
            torch.save(state, file)
        dist.barrier()
        want = a.step(own)
        b = distribute(n, loss, p, strategy(kind, tensor=2), device="cpu")
        b.load_state_dict(*torch.load(file))
        return abs(b.step(batch) / want - 1)

    assert strategies.in_processes(2, work) < 1e-12
