"""Writes graphs for any number of samples that the tests of Go read.

    PYTHONPATH=python $(python/install_torch.sh) python/tests/samples_fixture.py

Two small decoders, one with Adam and with clipped gradients and Adafactor, which
placer/strategies divides, blocks and mixtures that placer/strategies/torch tells apart, and the model of
docs/pytorch.md, of whose transcripts it is."""

from __future__ import annotations

import functools
import os
import re
from typing import Any, Callable

import mixtures
import models
import split_models
import torch
from placer_torch import capture, samples

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")


def decoder() -> models.Example:
    model, loss, batch, _ = models.gpt2(layers=2, width=32, batch=2, time=8, vocab=48, heads=4)
    return model, loss, batch, torch.optim.Adam(model.parameters())


def llama() -> models.Example:
    return models.llama(layers=2, width=32, heads=4, kv_heads=2, hidden=64, vocab=48, batch=2, time=8)


def clipped() -> models.Example:
    model, loss, batch, _ = decoder()
    return model, loss, batch, torch.optim.Adafactor(model.parameters())


def of_the_page() -> models.Example:
    with open(os.path.join(ROOT, "docs", "pytorch.md")) as f:
        found = re.search(r"```python\n(# mymodel.py\n.*?)```", f.read(), re.S)
    assert found
    module: dict[str, Any] = {"__name__": "mymodel"}
    exec(found[1], module)
    return module["make"]()


FILES: dict[str, tuple[str, Callable[[], models.Example], dict[str, Any]]] = {  # by path from the root: the graph's name, what makes it, what capture is told
    "placer/strategies/testdata/torch_gpt2.json": ("gpt2", decoder, {}),
    "placer/strategies/testdata/torch_gpt2_clipped.json": ("gpt2", clipped, {"clip_norm": 1.0}),
    "placer/strategies/torch/testdata/llama.json": ("llama", llama, {}),
    "placer/strategies/torch/testdata/encoder.json": ("encoder", split_models.encoder, {}),
    **{f"placer/strategies/torch/testdata/{kind}.json": (kind, functools.partial(split_models.block, kind), {}) for kind in split_models.BLOCKS},
    "placer/strategies/torch/testdata/chosen.json": ("chosen", mixtures.chosen, {}),
    "placer/strategies/torch/testdata/blocks.json": ("blocks", mixtures.blocks, {}),
    "internal/cli/testdata/mymodel.json": ("make", of_the_page, {}),
}


def text(path: str) -> str:
    name, make, options = FILES[path]
    model, loss, batch, optimizer = make()
    n = samples.count(batch)
    step = lambda m: capture(model, loss, samples.resized(batch, n, m), optimizer, name=name, **options)  # noqa: E731
    return samples.text(step(n), n, step)


if __name__ == "__main__":
    for path in FILES:
        with open(os.path.join(ROOT, path), "w") as f:
            f.write(text(path))
