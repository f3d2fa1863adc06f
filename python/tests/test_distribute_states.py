"""States of distributed trainings: asked for at any time, of models in which not all is trained."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

import models
import pipelines
import strategies
from placer_torch.clipping import Clip
from placer_torch.errors import RunError
from placer_torch.parallel import check, distribute, micro
from placer_torch.parallel.pipeline_state import broadcast
from strategies import SAMPLES, Kind, strategy

pytestmark = pytest.mark.forks

# Everything is float64.
CLOSE = 1e-8
WIDTH = 8
Doc = dict[str, Any]


class Net(nn.Module):
    """With a parameter that no step uses."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(2)))
        self.out, self.unused = nn.Linear(WIDTH, 1), nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.layers(x))


def made() -> models.Example:
    """Weights and biases in groups of their own."""
    torch.manual_seed(0)
    m = Net().double()
    batch = torch.randn(SAMPLES, WIDTH, dtype=torch.float64), torch.randn(SAMPLES, 1, dtype=torch.float64)
    of = [{"params": [p for p in m.parameters() if p.dim() > 1], "lr": 0.02}, {"params": [p for p in m.parameters() if p.dim() == 1], "weight_decay": 0.0}]
    return m, lambda m, b: F.mse_loss(m(b[0]), b[1]), batch, torch.optim.AdamW(of, lr=0.01)


NET = Kind(made, "layers", (), (), "")
STAGES = pipelines.strategy("1f1b", [["layers.0"], ["layers.1", "out"]], micro_batches=2) | {"batch": SAMPLES}
DOCS = {"ddp": strategy(NET, "ddp", 2), "zero-1": strategy(NET, "zero-1", 2), "zero-3": strategy(NET, "zero-3", 2), "stages": STAGES}


def plain(steps: int, change: Any = lambda k, model: None, clip: Clip = Clip()) -> dict[str, torch.Tensor]:
    """The state behind so many steps of one process. change: called before each."""
    model, loss, batch, optimizer = made()
    for k in range(steps):
        change(k, model)
        optimizer.zero_grad()
        loss(model, batch).backward()
        clip.eager(model.parameters())
        optimizer.step()
    return model.state_dict()


def begun(doc: Doc, clip: Clip = Clip()) -> tuple[Any, Any]:
    model, loss, batch, optimizer = made()
    t = distribute(model, loss, optimizer, doc, device="cpu", clip_norm=clip.norm)
    return t, micro.part(batch, t.replica, t.strategy.groups)


@pytest.mark.parametrize("name", DOCS)
def test_asking_before_the_first_step_changes_nothing(name: str) -> None:
    def work() -> tuple[float, float, int]:
        t, own = begun(DOCS[name])
        before = t.state_dict(), t.optimizer_state()
        for _ in range(3):
            t.step(own)
        state, slots = t.state_dict(), t.optimizer_state()
        if dist.get_rank():
            return 0.0, 0.0, 0
        return check.of_states(state, plain(3)), float(slots["state"]["out.weight"]["step"]), len(before[1]["state"])

    off, steps, kept = strategies.in_processes(2, work)
    assert (off < CLOSE, steps, kept) == (True, 3, 0)


@pytest.mark.parametrize("name", DOCS)
def test_training_goes_back_to_what_was_kept(name: str) -> None:
    """A state is a copy, and the parameter that no step uses has nothing in the optimizer's."""

    def work() -> float:
        t, own = begun(DOCS[name])
        t.step(own)
        kept = t.state_dict(), t.optimizer_state()
        for _ in range(2):
            t.step(own)
        if name != "stages":
            with torch.no_grad():  # which leaves parameters whole on every process
                t.model(own[0])
        state, slots = broadcast(kept, t.mesh)
        assert not any("unused" in k for k in slots["state"]) and slots["param_groups"][0]["lr"] == 0.02
        t.load_state_dict(state, slots)
        for _ in range(2):
            t.step(own)
        found = t.state_dict()
        return 0.0 if dist.get_rank() else check.of_states(found, plain(3))

    assert strategies.in_processes(2, work) < CLOSE


def test_a_state_before_the_first_step_of_stages() -> None:
    """It is the model's from then on, and a state of other names is refused."""

    def work() -> tuple[float, str]:
        first, own = begun(DOCS["zero-1"])
        first.step(own)
        state, slots = broadcast((first.state_dict(), first.optimizer_state()), first.mesh)
        t, own = begun(STAGES)
        with pytest.raises(RunError) as e:
            t.load_state_dict({f"module.{k}": v for k, v in state.items()})
        t.load_state_dict(state, slots)
        found, again = t.state_dict(), t.optimizer_state()
        if not dist.get_rank():
            assert all(torch.equal(found[k], v) for k, v in state.items()) and again["state"].keys() == slots["state"].keys()
        for _ in range(2):
            t.step(own)
        found = t.state_dict()
        return 0.0 if dist.get_rank() else check.of_states(found, plain(3)), str(e.value)

    off, said = strategies.in_processes(2, work)
    assert off < CLOSE and said == "the state has no layers.0.0.weight and 7 more, which the model has"


def adagrad() -> models.Example:
    """Its sums are there before the first step."""
    model, loss, batch, _ = made()
    return model, loss, batch, torch.optim.Adagrad(model.parameters(), lr=0.05, initial_accumulator_value=0.1)


def test_adagrad() -> None:
    for got in strategies.run(adagrad, [DOCS[k] for k in ("ddp", "zero-1", "zero-3")]):
        assert got.loss < CLOSE and got.state < CLOSE
    got, want = pipelines.run(adagrad, STAGES), pipelines.plain(adagrad, STAGES)
    assert check.of_states(got.state, want.state) < CLOSE


def frozen(k: int, model: nn.Module) -> None:
    """The first layer is trained from the second step on, the second one up to the third."""
    model.get_submodule("layers.0").requires_grad_(k > 0)
    model.get_submodule("layers.1").requires_grad_(k < 3)


@pytest.mark.parametrize("name", ("ddp", "zero-1", "zero-3"))
def test_parameters_that_are_trained_for_some_steps(name: str) -> None:
    def work() -> float:
        t, own = begun(DOCS[name], Clip(0.1))
        for k in range(5):
            frozen(k, t.model)
            t.step(own)
        found = t.state_dict()
        return 0.0 if dist.get_rank() else check.of_states(found, plain(5, frozen, Clip(0.1)))

    assert strategies.in_processes(2, work) < CLOSE


def test_stages_keep_to_what_is_trained() -> None:
    def work() -> str:
        t, own = begun(STAGES)
        t.step(own)
        before = copy.deepcopy(t.state_dict())
        t.model.layers[0].requires_grad_(False)
        with pytest.raises(RunError) as e:
            t.step(own)
        assert all(torch.equal(v, before[k]) for k, v in t.state_dict().items())
        return str(e.value)

    assert "parameter layers.0.0.weight is frozen now and was not in the first step" in strategies.in_processes(2, work)
