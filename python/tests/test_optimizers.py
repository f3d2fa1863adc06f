"""Every optimizer of torch that a step may have, and clipped gradients, beside plain torch."""

from __future__ import annotations

import copy
import json
import math
from typing import Any, Callable

import models
import pytest
import torch
import torch.nn as nn
from placer_torch import CaptureError, Loop, RunError, capture, cli, graph, load, run, schedule
from test_run import scattered

O = torch.optim
Make = Callable[[Any], torch.optim.Optimizer]

# foreach=False is the form that steps have the bits of.
MAKE: dict[str, Make] = {
    "sgd, maximize": lambda q: O.SGD(q, lr=0.1, momentum=0.9, weight_decay=0.1, maximize=True, foreach=False),
    "adam, amsgrad": lambda q: O.Adam(q, lr=0.01, amsgrad=True, weight_decay=0.1, foreach=False),
    "adamw, maximize": lambda q: O.AdamW(q, lr=0.01, amsgrad=True, maximize=True, foreach=False),
    "adadelta": lambda q: O.Adadelta(q, lr=0.5, weight_decay=0.01, foreach=False),
    "adafactor": lambda q: O.Adafactor(q, lr=0.05, weight_decay=0.01, foreach=False),
    "adagrad": lambda q: O.Adagrad(q, lr=0.05, lr_decay=0.1, initial_accumulator_value=0.1, foreach=False),
    "adamax": lambda q: O.Adamax(q, lr=0.05, foreach=False),
    "asgd": lambda q: O.ASGD(q, lr=0.05, t0=2, foreach=False),  # averages from step 3
    "nadam": lambda q: O.NAdam(q, lr=0.05, weight_decay=0.1, decoupled_weight_decay=True, foreach=False),
    "radam": lambda q: O.RAdam(q, lr=0.05, foreach=False),  # rectified from step 6
    "rmsprop": lambda q: O.RMSprop(q, lr=0.01, weight_decay=0.1, foreach=False),
    "rmsprop, centered": lambda q: O.RMSprop(q, lr=0.01, centered=True, momentum=0.9, foreach=False),
    "rprop": lambda q: O.Rprop(q, lr=0.01, foreach=False),
}
if hasattr(O, "Muon"):  # torch 2.9
    MAKE["muon"] = lambda q: O.Muon(q, lr=0.01)
STEPS = 8


def example(make: Make) -> tuple[nn.Sequential, Any, torch.optim.Optimizer]:
    """A model with a parameter group for each of its two layers."""
    torch.manual_seed(0)
    m = nn.Sequential(nn.Linear(8, 16, bias=False), nn.Tanh(), nn.Linear(16, 4, bias=False))
    if make is not MAKE.get("muon"):  # which takes matrices alone
        m[0], m[2] = nn.Linear(8, 16), nn.Linear(16, 4)
    return m, (torch.randn(6, 8), torch.randint(0, 4, (6,))), make([{"params": m[0].parameters()}, {"params": m[2].parameters(), "lr": 0.02}])


def eager(model: nn.Module, batch: Any, optimizer: torch.optim.Optimizer, **clip: Any) -> tuple[float, float]:
    """A step of plain torch: its loss, and the norm of all gradients where they are clipped by it."""
    optimizer.zero_grad()
    loss = models.cross_entropy(model, batch)
    loss.backward()
    norm = math.nan
    if "clip_value" in clip:
        torch.nn.utils.clip_grad_value_(model.parameters(), clip["clip_value"], foreach=False)
    if "clip_norm" in clip:
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), clip["clip_norm"], clip.get("norm_type", 2.0), foreach=False).item()
    optimizer.step()
    return loss.item(), norm


def same(loop: Loop, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Parameters and the optimizer's state have the same bits."""
    assert all(torch.equal(v, loop.state_dict()[k]) for k, v in model.state_dict().items())
    slots = loop.optimizer_state()["slots"]
    want = {f"{k}.{s}": v for k, p in model.named_parameters() for s, v in optimizer.state[p].items() if s != "step" and v is not None}
    assert slots.keys() == want.keys() and all(torch.equal(v, slots[k]) for k, v in want.items())


@pytest.mark.parametrize("workers", [False, True])
@pytest.mark.parametrize("name", MAKE)
def test_bits_of_torch(name: str, workers: bool) -> None:
    """Under a scheduler, scattered over two devices, through a checkpoint."""
    model, batch, optimizer = example(MAKE[name])
    scheduler = O.lr_scheduler.ExponentialLR(optimizer, 0.8)
    p = capture(model, models.cross_entropy, batch, optimizer)
    assert not p.in_use
    with Loop(p, scattered(p, 0.5), model, workers=workers) as loop:
        for _ in range(STEPS):
            assert loop.step(batch) == eager(model, batch, optimizer)[0]
            scheduler.step()
            loop.set_lr(scheduler.get_last_lr())
        same(loop, model, optimizer)
        saved = loop.state_dict(), loop.optimizer_state()
    with Loop(p, schedule.single(schedule.ops(p)), model, workers=False) as again:
        again.step(batch)  # of a run of its own, which the checkpoint replaces
        again.load_state_dict(*saved)
        for _ in range(2):
            assert again.step(batch) == eager(model, batch, optimizer)[0]
        same(again, model, optimizer)


@pytest.mark.parametrize("name", MAKE)
def test_in_use(name: str) -> None:
    """A loop goes on from torch's own state."""
    model, batch, optimizer = example(MAKE[name])
    for _ in range(3):
        eager(model, batch, optimizer)
    p = capture(model, models.cross_entropy, batch, optimizer)
    assert p.in_use
    with run(p, scattered(p, 0.5), model, optimizer=optimizer, workers=True) as loop:
        twin, other = copy.deepcopy((model, optimizer))
        for _ in range(STEPS):
            assert loop.step(batch) == eager(twin, batch, other)[0]
        same(loop, twin, other)


def test_a_rate_before_the_first_step() -> None:
    """Rprop begins with the rate of its first step, not with that of the capture."""
    model, batch, optimizer = example(MAKE["rprop"])
    p = capture(model, models.cross_entropy, batch, optimizer)
    with Loop(p, schedule.single(schedule.ops(p)), model, workers=False) as loop:
        for g in optimizer.param_groups:
            g["lr"] = 0.3
        loop.follow(optimizer)
        for _ in range(3):
            assert loop.step(batch) == eager(model, batch, optimizer)[0]


def test_follow_names_what_is_fixed() -> None:
    model, batch, optimizer = example(MAKE["rmsprop"])
    p = capture(model, models.cross_entropy, batch, optimizer)
    with Loop(p, schedule.single(schedule.ops(p)), model, workers=False) as loop:
        for key, value, says in (("alpha", 0.5, "alpha of parameter group 1 is 0.5, captured as 0.99: capture again"), ("momentum", 0.5, "captured without: capture again")):
            was, optimizer.param_groups[1][key] = optimizer.param_groups[1][key], value
            with pytest.raises(RunError, match=says):
                loop.follow(optimizer)
            optimizer.param_groups[1][key] = was


def test_files(tmp_path: Any) -> None:
    """A program file has the optimizer by name, and the norm."""
    model, batch, optimizer = example(MAKE["adafactor"])
    p = capture(model, models.cross_entropy, batch, optimizer, clip_norm=0.1)
    p.save(str(tmp_path / "program.pt"))
    q = load(str(tmp_path / "program.pt"))
    with Loop(q, scattered(q, 0.5), model, workers=True) as loop:
        for _ in range(3):
            loss, norm = eager(model, batch, optimizer, clip_norm=0.1)
            assert loop.step(batch) == loss and loop.grad_norm() == norm
        same(loop, model, optimizer)


# Elements read and written by the kernels of a late step, each of the parameter's size, by the
# formulas of the single-tensor forms.
PASSES = {"adadelta": 30, "adagrad": 11, "adamax": 16, "rmsprop": 16, "radam": 28}


@pytest.mark.parametrize(("name", "kind"), [("adadelta", "ApplyAdadelta"), ("adagrad", "ApplyAdagrad"), ("adamax", "ApplyAdaMax"), ("rmsprop", "ApplyRMSProp"), ("rmsprop, centered", "ApplyCenteredRMSProp"), ("radam", "ApplyRAdam"), ("adafactor", "ApplyAdafactor"), ("nadam", "ApplyNAdam"), ("rprop", "ApplyRprop"), ("asgd", "ApplyASGD")])
def test_graph(name: str, kind: str) -> None:
    model, batch, optimizer = example(MAKE[name])
    p = capture(model, models.cross_entropy, batch, optimizer)
    eager(model, batch, optimizer)
    ops = {o["name"]: o for o in json.loads(graph.text(p))["ops"]}
    u = ops["update.0.weight"]
    assert u["kind"] == kind and u["flops"] > 0
    if name in PASSES:
        assert u["bytes"] == PASSES[name] * 4 * 8 * 16
    state = {k: v for k, v in optimizer.state[model[0].weight].items() if k != "step"}
    assert u["in"][2:] == [f"0.weight.{k}" for k in state]
    assert [ops[f"0.weight.{k}"]["resident"] for k in state] == [v.nbytes for v in state.values()]
    assert {ops[k].get("group") for k in ("0.weight", *u["in"][2:])} == {u["group"]}


@pytest.mark.parametrize(
    ("make", "kind", "passes", "flops"),
    [
        (lambda q: O.SGD(q, lr=1), "ApplyGradientDescent", 3, 2),  # add_ 3
        (lambda q: O.SGD(q, lr=1, weight_decay=0.1), "ApplyGradientDescent", 6, 2),  # add 3
        (lambda q: O.SGD(q, lr=1, momentum=0.9), "ApplyMomentum", 8, 4),  # mul_ 2, add_ 3
        (lambda q: O.SGD(q, lr=1, momentum=0.9, nesterov=True), "ApplyMomentum", 11, 4),  # add 3
        (lambda q: O.Adam(q), "ApplyAdam", 18, 12),  # lerp_ 3, mul_ 2, addcmul_ 3, sqrt 2, div 2, add_ 2, addcdiv_ 4
        (lambda q: O.Adam(q, weight_decay=0.1), "ApplyAdam", 21, 12),  # add 3
        (lambda q: O.AdamW(q), "ApplyAdam", 20, 12),  # mul_ 2
        (lambda q: O.Adam(q, amsgrad=True), "ApplyAdam", 21, 12),  # maximum 3
    ],
)
def test_costs_of_the_usual(make: Make, kind: str, passes: int, flops: int) -> None:
    """Bytes by the kernels of the single-tensor forms, an element of each tensor that they touch."""
    model, batch, optimizer = example(make)
    p = capture(model, models.cross_entropy, batch, optimizer)
    (u,) = (o for o in json.loads(graph.text(p))["ops"] if o["name"] == "update.0.weight")
    assert (u["kind"], u["bytes"], u["flops"]) == (kind, passes * 4 * 128, flops * 128)


@pytest.mark.parametrize("workers", [False, True])
@pytest.mark.parametrize("clip", [{"clip_norm": 0.05}, {"clip_norm": 100.0}, {"clip_norm": 0.02, "norm_type": math.inf}, {"clip_norm": 0.1, "norm_type": 1.0}, {"clip_value": 0.01}, {"clip_norm": 0.02, "clip_value": 0.01}, {"clip_norm": math.inf}])
def test_clipping(clip: Any, workers: bool) -> None:
    model, batch, optimizer = example(lambda q: O.SGD(q, lr=0.5, momentum=0.9, foreach=False))
    model[2].bias.requires_grad_(False)
    p = capture(model, models.cross_entropy, batch, optimizer, **clip)
    with Loop(p, scattered(p, 1.0), model, workers=workers, gradients=True) as loop:
        for _ in range(3):
            loss, norm = eager(model, batch, optimizer, **clip)
            assert loop.step(batch) == loss
            if "clip_norm" in clip:
                assert loop.grad_norm() == norm
        assert all(torch.equal(g, model.get_parameter(k).grad) for k, g in loop.gradients().items())  # as .grad has them: clipped
        assert all(torch.equal(v, loop.state_dict()[k]) for k, v in model.state_dict().items())


def test_clipping_in_two_types() -> None:
    """Gradients of bfloat16 keep their type."""
    model, batch, optimizer = example(lambda q: O.SGD(q, lr=0.5, foreach=False))
    model.to(torch.bfloat16)
    batch = (batch[0].bfloat16(), batch[1])
    p = capture(model, models.cross_entropy, batch, optimizer, clip_norm=0.05)
    with Loop(p, scattered(p, 0.5), model, workers=False) as loop:
        for _ in range(3):
            assert (loop.step(batch), loop.grad_norm()) == eager(model, batch, optimizer, clip_norm=0.05)
        assert all(torch.equal(v, loop.state_dict()[k]) for k, v in model.state_dict().items())


def test_clipping_that_is_refused() -> None:
    model, batch, optimizer = example(MAKE["rmsprop"])
    for clip, says in (({"clip_norm": 0.0}, "clip_norm 0.0: want a number above 0"), ({"clip_value": -1}, "clip_value -1"), ({"clip_norm": 1.0, "norm_type": math.nan}, "norm_type nan")):
        with pytest.raises(CaptureError, match=says):
            capture(model, models.cross_entropy, batch, optimizer, **clip)
    with pytest.raises(CaptureError, match="gradients to clip without a loss"):
        capture(model, None, batch[0], clip_norm=1.0)
    p = capture(model, models.cross_entropy, batch, optimizer)
    with Loop(p, schedule.single(schedule.ops(p)), model, workers=False) as loop:
        loop.step(batch)
        with pytest.raises(RunError, match=r"clips no gradients by their norm: capture\(…, clip_norm=1.0\)"):
            loop.grad_norm()
    q = capture(model, models.cross_entropy, batch, optimizer, clip_norm=1.0)
    with Loop(q, schedule.single(schedule.ops(q)), model, workers=False) as loop, pytest.raises(RunError, match="no step was run"):
        loop.grad_norm()


def test_clipping_in_the_graph() -> None:
    """Each gradient's norm and product is an op of the update in the module that holds the
    parameter; the norm of all reads one number of each."""
    model, batch, optimizer = example(MAKE["adagrad"])
    p = capture(model, models.cross_entropy, batch, optimizer, clip_norm=1.0)
    ops = json.loads(graph.text(p))["ops"]
    clip = [o for o in ops if o.get("phase") == "update" and not o["kind"].startswith("Apply")]
    assert [o["kind"] for o in clip] == ["ReduceL2"] * 4 + ["Pack", "ReduceL2", "AddV2", "Reciprocal", "Mul", "Clip"] + ["Mul"] * 4
    assert [o.get("module", "") for o in clip] == ["0", "0", "2", "2"] + [""] * 6 + ["0", "0", "2", "2"]
    assert [o["bytes"] for o in clip[:4]] == [4 * (n + 1) for n in (128, 16, 64, 4)]
    assert [o["bytes"] for o in clip[-4:]] == [4 * (2 * n + 1) for n in (128, 16, 64, 4)]
    updates = [o for o in ops if o["kind"].startswith("Apply")]
    assert [u["in"][1] for u in updates] == [o["name"] for o in clip[-4:]]


@pytest.mark.parametrize("workers", [False, True])
def test_accumulation(workers: bool) -> None:
    """Each batch goes forward and backward, as in a loop of torch, then all are one update."""
    model, batch, optimizer = example(MAKE["adamax"])
    model.insert(1, nn.BatchNorm1d(16))
    optimizer.add_param_group({"params": model[1].parameters()})
    batches = [batch, *((torch.randn(6, 8), torch.randint(0, 4, (6,))) for _ in range(2))]
    p = capture(model, models.cross_entropy, batches, optimizer, clip_norm=0.1, accumulate=True)
    with Loop(p, scattered(p, 0.5), model, workers=workers) as loop:
        for _ in range(3):
            optimizer.zero_grad()
            total = 0.0
            for b in batches:
                loss = models.cross_entropy(model, b) / len(batches)
                loss.backward()
                total = total + loss.detach()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1, foreach=False)
            optimizer.step()
            assert loop.step(batches) == total.item() and loop.grad_norm() == norm.item()
            batches = batches[1:] + batches[:1]
        same(loop, model, optimizer)
    with pytest.raises(CaptureError, match="a list of batches"):
        capture(model, models.cross_entropy, {"x": batch}, optimizer, accumulate=True)


def test_accumulated_activations_go_batch_by_batch() -> None:
    """On one device no forward op of a batch stands before the backward ops of the one before."""
    model, batch, optimizer = example(MAKE["adamax"])
    p = capture(model, models.cross_entropy, [batch, batch], optimizer, accumulate=True)
    phases = [o.phase for o in p.ops if o.role == "call" and not o.view]
    turns = [a for a, b in zip(phases, [*phases[1:], ""]) if a != b]
    assert turns == ["forward", "backward", "forward", "backward"]


@pytest.mark.skipif(not hasattr(O, "Muon"), reason="this torch has no Muon")
@pytest.mark.parametrize("rows, columns, gemm, repeats, kernels", [(24, 64, [1, 24, 24, 2 * 64 + 24], 5, 3), (64, 24, [1, 24, 24, 2 * 64 + 24], 5, 3), (32, 32, [1, 32, 32, 32], 15, 1)])
def test_products_of_muon(rows: int, columns: int, gemm: list[int], repeats: int, kernels: int) -> None:
    """Newton and Schulz' five iterations, in bf16, of the smaller side s and the larger l: s x s x l,
    s x s x s and s x l x s (torch.optim.Muon's documentation, Keller Jordan 2024)."""
    torch.manual_seed(0)
    model = nn.Linear(columns, rows, bias=False)
    p = capture(model, lambda m, x: m(x).square().mean(), torch.randn(2, columns), O.Muon(model.parameters()))
    (op,) = [o for o in graph.docs(p) if o["kind"] == "ApplyMuon"]
    assert (op["dtype"], op["gemm"], op["repeats"], op.get("kernels", 1)) == ("bf16", gemm, repeats, kernels)
    s, n = min(rows, columns), max(rows, columns)
    products = 5 * 2 * (2 * s * s * n + s**3)
    assert repeats * 2 * math.prod(op["gemm"]) == products
    assert products < op["flops"] < products + 60 * s * n  # and the rest, a few an element


@pytest.mark.skipif(not hasattr(O, "Muon"), reason="this torch has no Muon")
@pytest.mark.parametrize("made", [0, 2])
def test_several_optimizers(made: int) -> None:
    """Muon of the matrices beside AdamW of all else, each with its scheduler."""
    model, batch, _ = example(MAKE["adamax"])
    both = [O.Muon([p for p in model.parameters() if p.dim() == 2], lr=0.02), O.AdamW([p for p in model.parameters() if p.dim() < 2], lr=0.01, foreach=False)]
    schedulers = [O.lr_scheduler.ExponentialLR(both[0], 0.5), O.lr_scheduler.ExponentialLR(both[1], 0.9)]

    def step() -> float:
        both[1].zero_grad()
        both[0].zero_grad()
        loss = models.cross_entropy(model, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5, foreach=False)
        for o, s in zip(both, schedulers):
            o.step()
            s.step()
        return loss.item()

    for _ in range(made):
        step()
    p = capture(model, models.cross_entropy, batch, both, clip_norm=0.5)
    with run(p, scattered(p, 0.5), model, optimizer=both, workers=True) as loop:
        assert loop.steps == made
        for _ in range(3):
            assert loop.step(batch) == step()
            loop.follow(both)
        assert all(torch.equal(v, loop.state_dict()[k]) for k, v in model.state_dict().items())
    with pytest.raises(CaptureError, match="two optimizers hold a parameter of shape"):
        capture(model, models.cross_entropy, batch, [both[0], O.SGD(model.parameters(), lr=1)])
    with pytest.raises(CaptureError, match="of type str: give one of torch.optim"):
        capture(model, models.cross_entropy, batch, ["sgd"])  # type: ignore[list-item]


def accumulated() -> Any:
    """What the command line calls."""
    model, batch, optimizer = example(MAKE["adafactor"])
    return model, models.cross_entropy, [batch, batch], optimizer


def test_command_line(tmp_path: Any, capsys: Any) -> None:
    assert cli.main(["capture", "--model", "test_optimizers:accumulated", "--clip-norm", "0.01", "--norm-type", "inf", "--accumulate", "-o", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["any_batch"]
    p = load(str(tmp_path / "program.pt"))
    model, _, batches, optimizer = accumulated()
    with run(p, schedule.single(schedule.ops(p)), model, workers=False) as loop:
        for b in batches:
            (models.cross_entropy(model, b) / 2).backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01, math.inf, foreach=False)
        optimizer.step()
        loop.step(batches)
        assert loop.grad_norm() == norm.item()
        same(loop, model, optimizer)
