"""Steps captured for devices of another kind than the model lies on, and models without values."""

from __future__ import annotations

from typing import Any

import models
import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from placer_torch import CaptureError, FormatError, Loop, capture, cli, hosts, kinds, run, schedule
from placer_torch import state as states
from placer_torch.program import Op, check_kernels
from placer_torch.run_inprocess import InProcess

cuda = pytest.mark.skipif(not torch.backends.cuda.is_built(), reason="this torch knows no ops of CUDA")


class Attends(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Linear(8, 24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.w(x)[:, None].chunk(3, -1)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def example() -> tuple[nn.Module, Any, torch.Tensor, torch.optim.Optimizer]:
    torch.manual_seed(0)
    m = Attends()
    return m, lambda f, b: f(b).square().mean(), torch.randn(2, 5, 8), torch.optim.SGD(m.parameters(), lr=0.1)


@cuda
def test_attention_for_gpus() -> None:
    """The CPU's kernel is named before anything runs; captured for GPUs, attention is
    products that both kinds have, with the same results but for rounding."""
    p, q = capture(*example()), capture(*example(), device="cuda")
    check_kernels(p, "cpu")
    with pytest.raises(FormatError, match="is aten._scaled_dot_product_flash_attention_for_cpu.default, .* no kernel for cuda: .*--device cuda"):
        check_kernels(p, "cuda")
    check_kernels(q, "cuda")
    check_kernels(q, "cpu")
    assert "Softmax" in {kinds.kind(o.target, 4) for o in q.ops if o.role == "call"}
    model, loss, batch, _ = example()
    run = InProcess(q, schedule.single(schedule.ops(q)), states.of_model(q, model))
    for _ in range(2):
        (got,), _ = run.step(states.batch(q))
    other = InProcess(p, schedule.single(schedule.ops(p)), states.of_model(p, model))
    for _ in range(2):
        (want,), _ = other.step(states.batch(p))
    torch.testing.assert_close(got, want)


@cuda
@pytest.mark.parametrize("name", ["lstm", "gpt2", "inception", "moe", "resnet", "gnmt", "tiny"])
def test_kernels_of_both_kinds(name: str) -> None:
    """No op that both kinds have is refused."""
    small = {"lstm": {"time": 2}, "gnmt": {"time": 2}, "gpt2": {"layers": 1}, "moe": {"layers": 1}, "inception": {"blocks": 1}}.get(name, {})
    p = capture(*getattr(models, name)(**small))
    check_kernels(p, "cpu")
    check_kernels(p, "cuda")


@cuda
def test_refused_before_it_is_profiled(tmp_path: Any, monkeypatch: Any, capsys: Any) -> None:
    folder = str(tmp_path)
    monkeypatch.setattr(hosts, "find", lambda _: hosts.Gpus(2))
    assert cli.main(["capture", "--model", "test_devices:example", "-o", folder]) == 0
    assert cli.main(["profile", "--program", folder + "/program.pt", "--hash", "h", "-o", folder]) == 1
    err = capsys.readouterr().err
    assert "no kernel for cuda" in err and err.count("\n") == 1
    assert cli.main(["capture", "--model", "test_devices:example", "--device", "cuda", "-o", folder]) == 0


def test_a_loop_checks_too() -> None:
    """With an op of GPUs alone."""
    p = capture(*example())
    p.ops.append(Op("x", "call", "aten._scaled_dot_product_efficient_attention.default", outputs=(p.ops[0].outputs[0],)))
    with pytest.raises(FormatError, match="no kernel for cpu"):
        Loop(p, schedule.single(schedule.ops(p)))
    with pytest.raises(CaptureError, match="want cpu or cuda"):
        capture(*example(), device="cuda:0")


def test_models_without_values() -> None:
    """A model or batch on the meta device is captured; a run says what to do."""
    with torch.device("meta"):
        model = Attends()
    _, loss, batch, _ = example()
    p = capture(model, loss, batch)
    one = schedule.single(schedule.ops(p))
    with pytest.raises(FormatError, match="parameter w.weight is on the meta device and has no values: model.to_empty"):
        run(p, one, model)
    with run(p, one, workers=False) as loop, pytest.raises(FormatError, match="batch is on the meta device"):
        loop.step(batch.to("meta"))
