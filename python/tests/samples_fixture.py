"""Writes the graph of a small decoder with Adam for any number of samples, which
placer/strategies divides in its tests.

    PYTHONPATH=python $(python/install_torch.sh) python/tests/samples_fixture.py >placer/strategies/testdata/torch_gpt2.json
"""

from __future__ import annotations

import sys

import models
import torch
from placer_torch import capture, samples


def text() -> str:
    model, loss, batch, _ = models.gpt2(layers=2, width=32, batch=2, time=8, vocab=48, heads=4)
    optimizer = torch.optim.Adam(model.parameters())

    def step(n: int):  # type: ignore[no-untyped-def]
        return capture(model, loss, samples.resized(batch, 2, n), optimizer, name="gpt2")

    return samples.text(step(2), 2, step)


if __name__ == "__main__":
    sys.stdout.write(text())
