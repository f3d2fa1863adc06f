"""What a strategy cannot be applied to is refused by name, before anything is changed."""

from __future__ import annotations

import copy
import functools
import json
import warnings
from typing import Any, Callable

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

import models
import strategies
from placer_torch import FormatError, RunError
from placer_torch.errors import PlacerTorchError
from placer_torch.parallel import distribute, micro, optimizers, read, refusals
from placer_torch.parallel.errors import StrategyError, StrategyWarning
from placer_torch.parallel.parts import Order
from strategies import KINDS, VOCABULARY, strategy

pytestmark = pytest.mark.forks

GPT2 = KINDS["gpt2"]
SPLIT = {"tensor": 2}


class Own(nn.Linear):
    """With a factor."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__(inputs, outputs)
        self.scale = nn.Parameter(torch.ones(outputs))


def conv(m: Any) -> None:
    m.h[1].mlp.c_fc = nn.Conv1d(16, 64, 1)


def own(m: Any) -> None:
    m.h[0].mlp.c_fc = Own(16, 64)


def odd(m: Any) -> None:
    m.h[0].mlp.c_fc, m.h[0].mlp.c_proj = nn.Linear(16, 63), nn.Linear(63, 16)


def normed(m: Any) -> None:
    m.wte.max_norm = 1.0


def alike(m: Any) -> None:
    m.h[1].mlp.c_fc.weight = m.h[0].mlp.c_fc.weight


def meta(m: Any) -> None:
    m.ln_f.to("meta")


def nothing(m: Any) -> None:
    pass


def test_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an older torch does not run is refused, and nothing else."""
    model, _, _, optimizer = KINDS["gpt2"].make()
    of = {"replicas": {"data": 2, "sharding": "zero-3"}, "tp": SPLIT, "stages": {"pipeline": 2, "schedule": "1f1b", "stages": [["wte", "h.0"], ["h.1", "ln_f", "lm_head"]]}}
    wanted = {"replicas": (2, 8), "tp": (2, 12), "stages": (2, 13)}
    for release in ((2, 6), (2, 8), (2, 11), (2, 12), (2, 13), (3, 0)):
        monkeypatch.setattr(torch, "__version__", f"{release[0]}.{release[1]}.0+cu130")
        for what, more in of.items():
            said = ""
            try:
                refusals.check(model, optimizer, read(strategy(GPT2, **more)))
            except StrategyError as e:
                said = str(e)
            assert ("wants torch" in said) == (release < wanted[what]), (release, what, said)
            if (what, release) == ("stages", (2, 12)):
                assert said.endswith(": a pipeline wants torch 2.13 or later, and this is 2.12.0+cu130")


@pytest.mark.parametrize(
    "change, of, words",
    [
        (nothing, {"layers": [["h.0"], ["h.9"]]}, "layers[1]: the model has no module 'h.9'"),
        (nothing, SPLIT | {"rows": ["h.0.attn.o"]}, "rows: the model has no module 'h.0.attn.o'"),
        (nothing, {"layers": [["h"]], "recompute": True}, "module h is a ModuleList, which is never called, so that it cannot be computed again"),
        (conv, SPLIT, "module h.1.mlp.c_fc is a Conv1d"),
        (own, SPLIT, "module h.0.mlp.c_fc is a Own with scale"),
        (odd, SPLIT, "module h.0.mlp.c_fc: out_features 63 is not divisible by 2"),
        (normed, SPLIT | {"vocabulary": True}, "module wte is an nn.Embedding with max_norm"),
        (nothing, SPLIT | {"vocabulary_rows": ["wte"]}, "modules wte and lm_head have the same weight"),
        (alike, {"data": 2, "sharding": "zero-3"}, "layers h.0 and h.1 share a parameter"),
        (meta, {}, "parameter ln_f.weight is on the meta device"),
    ],
)
def test_models(change: Callable[[Any], None], of: dict[str, Any], words: str) -> None:
    model, loss, _, optimizer = GPT2.make()
    change(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    refused(model, loss, optimizer, strategy(GPT2) | strategy(GPT2, **of), words)


def test_selective_recomputation() -> None:
    model, loss, _, optimizer = GPT2.make()
    refused(model, loss, optimizer, strategy(GPT2) | {"recompute": "selective"}, "recompute=selective")


def test_optimizers() -> None:
    model, loss, batch, optimizer = GPT2.make()
    shares = strategy(GPT2, "zero-1", 2)
    refused(model, loss, torch.optim.Adafactor(model.parameters()), shares, "optimizer Adafactor: zero-1=2")
    refused(model, loss, torch.optim.SGD([torch.nn.Parameter(torch.ones(3))]), shares, "a parameter of shape [3] that the model does not have")
    refused(model, loss, [torch.optim.SGD], shares, "the optimizer is of type type: give one of torch.optim, or a list of them")
    refused(model, loss, [torch.optim.SGD(model.parameters()), torch.optim.Adafactor(model.parameters())], shares, "optimizer Adafactor: zero-1=2")
    refused(model, loss, [torch.optim.SGD(model.parameters()), torch.optim.AdamW(model.ln_f.parameters())], shares, "two optimizers hold a parameter of shape [16]")
    refused(model, loss, torch.optim.SGD(model.parameters(), fused=True), shares, "optimizer SGD with fused=True: zero-1=2")
    loss(model, batch).backward()
    optimizer.step()
    refused(model, loss, optimizer, shares, "optimizer AdamW has made steps")


def test_parameters_that_are_lost() -> None:
    """None is left out of the updates without a word."""
    model, _, _, optimizer = GPT2.make()
    held = optimizers.names(model, optimizer)
    del model.h[1]
    with pytest.raises(StrategyError, match="parameter h.1.ln_1.weight, which the optimizer holds"):
        optimizers.follow(optimizer, model, held, Order({}, 1))


def test_wrapped_models() -> None:
    model, loss, _, optimizer = GPT2.make()
    refused(nn.DataParallel(model), loss, optimizer, strategy(GPT2), "wrapped by DataParallel")


def refused(model: nn.Module, loss: Any, optimizer: Any, doc: dict[str, Any], words: str) -> None:
    before = {k: (p, type(p)) for k, p in model.named_parameters()}
    with pytest.raises(StrategyError) as e:
        distribute(model, loss, optimizer, doc, device="cpu")
    assert words in str(e.value)
    assert all(p is before[k][0] and type(p) is before[k][1] for k, p in model.named_parameters())


def test_processes() -> None:
    model, loss, _, optimizer = GPT2.make()
    with pytest.raises(RunError, match="1 processes: .* is of 4, 1 stages x 2 replicas x 2 parts"):
        distribute(model, loss, optimizer, strategy(GPT2, data=2, tensor=2), device="cpu")


@pytest.mark.parametrize(
    "change, words",
    [
        ({"format": "placer plan 1"}, "format is 'placer plan 1'"),
        ({"trains": False}, "trains is False"),
        ({"sharding": "zero-4"}, "sharding is 'zero-4', want one of ddp, zero-1, zero-2, zero-3"),
        ({"tensor": 0}, "tensor is 0, want a number of 1 or more"),
        ({"batch": 6, "data": 4}, "6 samples cannot be divided among 4 replicas"),
        ({"layers": ["h.0"]}, "layers[0] is 'h.0', want a list of module paths"),
        ({"columns": "h.0"}, "columns is 'h.0', want a list"),
        ({"pipeline": 2}, "a pipeline of 2 without a schedule"),
        ({"vocabulary": 1}, "vocabulary is 1, want true or false"),
    ],
)
def test_files(tmp_path: Any, change: dict[str, Any], words: str) -> None:
    file = tmp_path / "s.json"
    file.write_text(json.dumps(strategy(GPT2) | change))
    with pytest.raises(FormatError) as e:
        read(str(file))
    assert str(e.value).startswith(f"{file}: ") and words in str(e.value)


def summed(model: Any, batch: Any) -> torch.Tensor:
    return F.cross_entropy(model(batch[0]).flatten(0, -2), batch[1].flatten(), reduction="sum")


def test_losses() -> None:
    """A loss that adds up is refused on the first step, before an update."""

    def work() -> tuple[str, bool]:
        model, _, batch, optimizer = GPT2.make()
        t = distribute(model, summed, optimizer, strategy(GPT2, mb=2), device="cpu")
        before = copy.deepcopy(model.state_dict())
        with pytest.raises(StrategyError) as e:
            t.step(batch)
        return str(e.value), all(torch.equal(v, before[k]) for k, v in model.state_dict().items())

    said, same = strategies.in_processes(1, work)
    assert "differs from that of them once by 100%" in said and same


def weighed(model: Any, batch: Any) -> torch.Tensor:
    return F.cross_entropy(model(batch[0]).flatten(0, -2), batch[1].flatten(), weight=torch.arange(VOCABULARY).double())


def test_losses_that_are_no_mean_of_parts() -> None:
    """Parts weigh alike, as everywhere, which is said once."""

    def work() -> list[tuple[str, int]]:
        found = []
        for loss in (models.cross_entropy, weighed):
            model, _, batch, optimizer = GPT2.make()
            t = distribute(model, loss, optimizer, strategy(GPT2, mb=2), device="cpu")
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                t.step(batch)
                t.step(batch)
            said = [str(w.message) for w in seen if issubclass(w.category, StrategyWarning)]
            found.append((said[0] if said else "", len(said)))
        return found

    mean, own = strategies.in_processes(1, work)
    assert mean == ("", 0)
    assert "differs from the mean of those of their halves by" in own[0] and own[1] == 1


def noisy(reduction: str, model: Any, batch: Any) -> torch.Tensor:
    """Rows that are mixed at random, dropped also in evaluation, and drawn in place."""
    x = model.wte(batch[0])
    mixed = torch.rand(len(x), 1, 1).double() * x + F.dropout(x[torch.randperm(len(x))], 0.3, True)
    return F.mse_loss(model.h[0](mixed), torch.empty_like(x).normal_(), reduction=reduction)


def test_losses_that_draw_random_numbers() -> None:
    """As those of diffusion do: a mean is one with the same noise, and what the step draws is what it would have."""

    def work() -> tuple[bool, str]:
        model, _, batch, optimizer = GPT2.make()
        t = distribute(model, functools.partial(noisy, "mean"), optimizer, strategy(GPT2, mb=2), device="cpu")
        torch.manual_seed(1)
        parts = [micro.part(batch, k, 2) for k in range(2)]
        want = sum(float(noisy("mean", model, x)) for x in parts) / 2
        torch.manual_seed(1)
        same = t.step(batch) == pytest.approx(want, rel=1e-12)
        model, _, batch, optimizer = GPT2.make()
        with pytest.raises(StrategyError) as e:
            distribute(model, functools.partial(noisy, "sum"), optimizer, strategy(GPT2, mb=2), device="cpu").step(batch)
        return same, str(e.value)

    same, said = strategies.in_processes(1, work)
    assert same and "differs from that of them once by 100%" in said


def test_scaled_losses() -> None:
    """What a GradScaler does behind the backward pass no step does."""

    def work() -> str:
        model, loss, batch, optimizer = GPT2.make()
        scaler = torch.amp.GradScaler("cpu")
        with pytest.raises(PlacerTorchError) as e:
            distribute(model, lambda m, b: scaler.scale(loss(m, b)), optimizer, strategy(GPT2), device="cpu").step(batch)
        return str(e.value)

    assert "the loss is scaled by a GradScaler" in strategies.in_processes(1, work)


def test_penalties_of_weights() -> None:
    """A loss that reads parameters of which processes have shares."""

    def penalised(model: Any, batch: Any) -> torch.Tensor:
        return models.cross_entropy(model, batch) + 1e-3 * sum(p.square().sum() for p in model.parameters())

    def work() -> str:
        model, _, batch, optimizer = GPT2.make()
        t = distribute(model, penalised, optimizer, strategy(GPT2, "zero-3", 2), device="cpu")
        with pytest.raises(StrategyError) as e:
            t.step(tuple(x[: len(x) // 2] for x in batch))
        return str(e.value)

    assert "reads parameters outside of the forward of their layer, where zero-3 has shares" in strategies.in_processes(2, work)


def by_method(model: Any, batch: Any) -> torch.Tensor:
    """A layer by another method than its forward."""
    x = model.wte(batch[0])
    for layer in model.h:
        x = layer.again(x)
    return x.square().mean()


def by_parts(model: Any, batch: Any) -> torch.Tensor:
    return model.h[0].mlp(model.h[0].ln_2(model.wte(batch[0]))).square().mean()


@pytest.mark.parametrize("loss", (by_method, by_parts))
@pytest.mark.parametrize("sharding", ("zero-1", "zero-3"))
def test_layers_that_are_not_called(loss: Any, sharding: str) -> None:
    def work() -> str:
        model, _, batch, optimizer = GPT2.make()
        type(model.h[0]).again = lambda layer, x: layer.mlp(layer.ln_2(x))
        t = distribute(model, loss, optimizer, strategy(GPT2, sharding, 2), device="cpu")
        with pytest.raises(StrategyError) as e:
            t.step(tuple(x[: len(x) // 2] for x in batch))
        return str(e.value)

    said = strategies.in_processes(2, work)
    assert "layer h.0 runs without being called (" in said and "test_distribute_refusals.py" in said, said


def test_batches_of_one_replica() -> None:
    """Parts of a replica that draw their own batches."""

    def work() -> str:
        model, loss, (ids, labels), optimizer = GPT2.make()
        t = distribute(model, loss, optimizer, strategy(GPT2, tensor=2), device="cpu")
        with pytest.raises(StrategyError) as e:
            t.step((ids, labels.flip(0) + t.mesh.part))
        return str(e.value)

    assert "the 2 processes of replica 0 were given different batches" in strategies.in_processes(2, work)


class Numbers(nn.Module):
    """Leaves torch in the middle."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(4, 8), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.up(x)
        return self.down(torch.tensor(y.tolist()))


def test_code_that_does_not_run_cut() -> None:
    def work() -> str:
        model = nn.Sequential(Numbers())
        doc = strategy(GPT2, tensor=2) | {"layers": [["0"]], "columns": ["0.up"], "rows": ["0.down"]}
        t = distribute(model, lambda m, b: m(b).square().mean(), torch.optim.SGD(model.parameters(), lr=0.1), doc, device="cpu")
        try:
            t.step(torch.ones(8, 4))
        except StrategyError as e:
            return str(e)
        return ""

    assert "module 0 (" in (said := strategies.in_processes(2, work)) and "test_distribute_refusals.py" in said, said


def grouped(kv_heads: int) -> models.Example:
    torch.manual_seed(0)
    model = models.Llama(layers=2, width=24, heads=6, kv_heads=kv_heads, hidden=24, vocab=32).double()
    ids = torch.randint(0, 32, (8, 8))
    return model, models.cross_entropy, (ids, ids.roll(-1, 1)), torch.optim.SGD(model.parameters(), lr=0.1)


def test_heads_of_keys_and_values() -> None:
    """One head is on all parts; three are not shared out among two."""
    doc = strategy(KINDS["llama"], tensor=2)
    (got,) = strategies.run(lambda: grouped(1), [doc])
    assert got.loss < 1e-12 and got.state < 1e-12
    with pytest.raises(StrategyError, match=r"module layers.0 \(.*models.py:\d+\) does not run on products cut in 2"):
        strategies.run(lambda: grouped(3), [doc])


def test_uneven_vocabulary() -> None:
    """A vocabulary need not be divisible: GPT-2 has 50,257 words."""

    def make() -> models.Example:
        model, loss, batch, _ = models.gpt2(layers=2, width=16, heads=4, batch=8, time=8, vocab=33)
        return model.double(), loss, batch, torch.optim.SGD(model.parameters(), lr=0.1)

    (got,) = strategies.run(make, [strategy(GPT2, tensor=2, vocabulary=True, recompute=True)])
    assert got.loss < 1e-12 and got.state < 1e-12
