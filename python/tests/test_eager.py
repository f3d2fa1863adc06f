"""The user's own step, measured on copies."""

from __future__ import annotations

import copy

import models
import torch
from placer_torch import eager


def test_the_model_stays_as_it_is() -> None:
    model, loss, batch, optimizer = models.tiny()
    before, threads = copy.deepcopy(model.state_dict()), torch.get_num_threads()
    got = eager.measure(model, loss, batch, optimizer, "cpu")
    assert got is not None and got.seconds > 0 and got.threads == threads
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items()) and all(p.grad is None for p in model.parameters())
    assert not optimizer.state


def test_inference_and_failure() -> None:
    model = torch.nn.Linear(3, 2)
    assert eager.measure(model, None, {"input": torch.zeros(4, 3)}, None, "cpu") is not None
    assert eager.measure(model, None, torch.zeros(4, 5), None, "cpu") is None
