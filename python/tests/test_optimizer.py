"""A loop's optimizer: rates that change, one that is in use already, gradients."""

from __future__ import annotations

import copy
from typing import Any

import models
import pytest
import torch
import torch.nn as nn
from placer_torch import FormatError, Loop, RunError, capture, load, run, schedule
from test_run import scattered

MAKE = {
    "sgd": lambda q: torch.optim.SGD(q, lr=0.1),
    "momentum": lambda q: torch.optim.SGD(q, lr=0.1, momentum=0.9, dampening=0.2),
    "adamw": lambda q: torch.optim.AdamW(q, lr=0.01, foreach=False),
}


def example(make: Any) -> tuple[nn.Sequential, Any, torch.optim.Optimizer]:
    torch.manual_seed(0)
    m = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
    return m, (torch.randn(6, 8), torch.randint(0, 4, (6,))), make([{"params": m[0].parameters()}, {"params": m[2].parameters(), "lr": 0.05}])


def eager(model: nn.Module, batch: Any, optimizer: torch.optim.Optimizer) -> float:
    optimizer.zero_grad()
    loss = models.cross_entropy(model, batch)
    loss.backward()
    optimizer.step()
    return loss.item()


@pytest.mark.parametrize("workers", [False, True])
@pytest.mark.parametrize("name", MAKE)
def test_set_lr(name: str, workers: bool) -> None:
    """By a scheduler, with the bits of the optimizer's own steps."""
    model, batch, optimizer = example(MAKE[name])
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    p = capture(model, models.cross_entropy, batch, optimizer)
    assert p.rates == ([0.1, 0.05] if name != "adamw" else [0.01, 0.05])
    with Loop(p, scattered(p, 0.5), model, workers=workers) as loop:
        for _ in range(4):
            assert loop.step(batch) == eager(model, batch, optimizer)
            scheduler.step()
            loop.set_lr(scheduler.get_last_lr())
        assert all(torch.equal(v, loop.state_dict()[k]) for k, v in model.state_dict().items())
        assert loop.optimizer_state()["lr"] == scheduler.get_last_lr()
        before = loop.state_dict()
        loop.set_lr(0)
        loop.step(batch)
        assert all(torch.equal(v, before[k]) for k, v in loop.state_dict().items())
        with pytest.raises(RunError, match="3 learning rates; the captured optimizer has 2 parameter groups"):
            loop.set_lr([1, 2, 3])


def test_checkpoint_has_the_rates(tmp_path: Any) -> None:
    model, batch, optimizer = example(MAKE["sgd"])
    p = capture(model, models.cross_entropy, batch, optimizer)
    p.save(str(tmp_path / "program.pt"))
    q = load(str(tmp_path / "program.pt"))
    one = schedule.single(schedule.ops(q))
    with Loop(q, one, model, workers=False) as a, Loop(q, one, model, workers=False) as b:
        a.set_lr([0.3, 0.2])
        a.step(batch)
        b.load_state_dict(a.state_dict(), a.optimizer_state())
        assert a.step(batch) == b.step(batch)
        assert all(torch.equal(v, b.state_dict()[k]) for k, v in a.state_dict().items())
    q.rates = []  # of a file that an earlier version wrote
    with Loop(q, one, model, workers=False) as c:
        c.set_lr([0.3, 0.2])
        c.step(batch)
        c.step(batch)
        assert torch.equal(c.state_dict()["2.bias"], a.state_dict()["2.bias"])


@pytest.mark.parametrize("name", MAKE)
def test_optimizer_in_use(name: str) -> None:
    """A loop goes on from the optimizer's own state, with its bits; without it there is an error."""
    model, batch, optimizer = example(MAKE[name])
    for _ in range(3):
        eager(model, batch, optimizer)
    optimizer.param_groups[0]["lr"] = 0.02
    p = capture(model, models.cross_entropy, batch, optimizer)
    one = schedule.single(schedule.ops(p))
    if name == "sgd":  # has no state that could be lost
        assert not p.in_use
    else:
        with pytest.raises(RunError, match="give optimizer="):
            run(p, one, model)
        run(p, one, workers=False).step()  # parameters are made up, and so are slots
    for workers in False, True:
        with run(p, scattered(p, 0.5), model, optimizer=optimizer, workers=workers) as loop:
            assert loop.steps == {"sgd": 0, "momentum": 1, "adamw": 3}[name]
            twin, _, other = example(MAKE[name])
            twin.load_state_dict(model.state_dict())
            other.load_state_dict(copy.deepcopy(optimizer.state_dict()))  # else both have the same tensors
            for _ in range(2):
                assert loop.step(batch) == eager(twin, batch, other)
            assert all(torch.equal(v, loop.state_dict()[k]) for k, v in twin.state_dict().items())


def test_optimizer_that_does_not_fit() -> None:
    model, batch, optimizer = example(MAKE["adamw"])
    p = capture(model, models.cross_entropy, batch, optimizer)
    one = schedule.single(schedule.ops(p))
    with pytest.raises(FormatError, match="does not hold the model's parameter 0.weight"):
        run(p, one, model, optimizer=torch.optim.AdamW(model[2].parameters()))
    model[0].requires_grad_(False)
    eager(model, batch, optimizer)
    with pytest.raises(FormatError, match="has made 0 steps of 0.weight and 1 of 2.weight"):
        run(p, one, model, optimizer=optimizer)
    with pytest.raises(RunError, match="without a model"):
        run(p, one, optimizer=optimizer)


@pytest.mark.parametrize("workers", [False, True])
def test_gradients(workers: bool) -> None:
    model, batch, optimizer = example(MAKE["sgd"])
    eager(model, batch, optimizer)
    p, q = capture(model, models.cross_entropy, batch), capture(model, models.cross_entropy, batch, optimizer)
    optimizer.zero_grad()
    models.cross_entropy(model, batch).backward()
    want = {k: v.grad for k, v in model.named_parameters()}
    with run(p, scattered(p, 0.5), model, workers=workers) as bare, run(q, scattered(q, 0.5), model, workers=workers, gradients=True) as kept, run(q, scattered(q, 0.5), model, workers=workers) as not_kept:
        for loop in bare, kept, not_kept:
            loop.step(batch)
        for loop in bare, kept:
            assert loop.gradients().keys() == want.keys() and all(torch.equal(loop.gradients()[k], v) for k, v in want.items() if v is not None)
        with pytest.raises(RunError, match="gradients=True"):
            not_kept.gradients()


def test_seed() -> None:
    """Dropout draws by the loop's seed: the same for the same one, on any devices."""
    model, _, batch, optimizer = models.tiny()
    p = capture(model, models.cross_entropy, batch, optimizer)
    losses = []
    for seed, workers in (0, False), (0, True), (1, False), (1, True), (2**40, False):
        with run(p, scattered(p, 0.5), model, workers=workers, seed=seed) as loop:
            losses.append(loop.step(batch))
    assert losses[0] == losses[1] and losses[2] == losses[3] and len(set(losses)) == 3


@pytest.mark.parametrize("workers", [False, True])
@pytest.mark.parametrize("name", ["momentum", "adamw"])
def test_schedulers_of_momentum(name: str, workers: bool) -> None:
    """OneCycleLR changes momentum, or the betas, too: the rate alone trains otherwise."""
    model, batch, optimizer = example({"momentum": lambda q: torch.optim.SGD(q, lr=0.1, momentum=0.9), "adamw": MAKE["adamw"]}[name])
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, [0.1, 0.05], total_steps=8)
    p = capture(model, models.cross_entropy, batch, optimizer)
    with Loop(p, scattered(p, 0.5), model, workers=workers) as loop:
        with pytest.raises(RunError, match=r"momentum beside the learning rate: loop.follow\(optimizer\)"):
            loop.set_lr(scheduler.get_last_lr())
        for _ in range(5):
            assert loop.step(batch) == eager(model, batch, optimizer)
            scheduler.step()
            loop.follow(optimizer)
        assert all(torch.equal(v, loop.state_dict()[k]) for k, v in model.state_dict().items())
        saved = loop.state_dict(), loop.optimizer_state()
    with Loop(p, schedule.single(schedule.ops(p)), model, workers=False) as again:
        again.load_state_dict(*saved)
        for _ in range(2):
            assert again.step(batch) == eager(model, batch, optimizer)


def test_what_follow_cannot_take() -> None:
    model, batch, optimizer = example(MAKE["sgd"])
    p = capture(model, models.cross_entropy, batch, optimizer)
    with Loop(p, schedule.single(schedule.ops(p)), model, workers=False) as loop:
        for key, value, says in (("momentum", 0.5, "momentum of parameter group 1 is 0.5, captured without: capture again"), ("nesterov", True, "nesterov of parameter group 1 is True")):
            was, optimizer.param_groups[1][key] = optimizer.param_groups[1][key], value
            with pytest.raises(RunError, match=says):
                loop.follow(optimizer)
            optimizer.param_groups[1][key] = was
        optimizer.param_groups[1]["weight_decay"] = 0.3
        loop.follow(optimizer)
        for _ in range(2):
            assert loop.step(batch) == eager(model, batch, optimizer)
        with pytest.raises(RunError, match="has 1 parameter groups, the captured one 2"):
            loop.follow(torch.optim.SGD(model.parameters(), lr=1))


def test_a_new_optimizer_brings_its_own() -> None:
    """Given to a loop, all of its hyperparameters count, not the rate alone."""
    model, batch, optimizer = example(MAKE["momentum"])
    p = capture(model, models.cross_entropy, batch, optimizer)
    other = example(lambda q: torch.optim.SGD(q, lr=0.1, momentum=0.5, dampening=0.2, weight_decay=0.1))[2]
    twin = copy.deepcopy(model)
    other.param_groups[0]["params"], other.param_groups[1]["params"] = list(twin[0].parameters()), list(twin[2].parameters())
    with run(p, schedule.single(schedule.ops(p)), twin, workers=False, optimizer=other) as loop:
        for _ in range(3):
            assert loop.step(batch) == eager(twin, batch, other)


def test_checkpoints_of_others() -> None:
    """What a checkpoint has and the model does not was left out without a word; torch's own
    state of an optimizer ended in a KeyError."""
    model, batch, optimizer = example(MAKE["adamw"])
    eager(model, batch, optimizer)
    p = capture(model, models.cross_entropy, batch, optimizer)
    with Loop(p, schedule.single(schedule.ops(p)), model, workers=False, optimizer=optimizer) as loop:
        before = loop.state_dict()
        with pytest.raises(RunError, match="the checkpoint has 4.weight, which the model does not have, and 1 more"):
            loop.load_state_dict({**before, "4.weight": torch.zeros(1), "4.bias": torch.zeros(1)})
        with pytest.raises(RunError, match=r"optimizer_state\(\) returns: load torch's own into the optimizer"):
            loop.load_state_dict(before, optimizer.state_dict())
