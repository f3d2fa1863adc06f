"""Captures the training steps that torch_models.py measures; needs torch, and no GPU.

    PYTHONPATH=python:python/tests python3 capture_torch_models.py FOLDER [MODEL...]

writes FOLDER/MODEL/graph.json and program.pt. Images of a batch are left out of
the program, for torch_models.py draws them.
"""
from __future__ import annotations

import os
import sys

import models
import torch
from placer_torch import graph
from placer_torch.capture import capture


def bf16(example: models.Example) -> models.Example:
    """The same model in bf16, with AdamW."""
    model, loss, batch, _ = example
    model = model.bfloat16()
    return model, loss, batch, torch.optim.AdamW(model.parameters())


def inference(example: models.Example) -> models.Example:
    model, _, batch, _ = example
    return model, None, batch[0], None


def resnet50(images: int, dtype: torch.dtype) -> models.Example:
    model = models.ResNet50().to(dtype)
    batch = (torch.randn(images, 3, 224, 224, dtype=dtype), torch.randint(0, 1000, (images,)))
    return model, models.cross_entropy, batch, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def llama_1b() -> models.Example:
    """Sizes of Llama 3.2 1B with a head of its own: 1.5 billion parameters."""
    model, loss, _, _ = models.llama(16, 2048, 32, 8, 8192, 128256, 1, 2048)
    ids = torch.randint(0, 128256, (1, 2048))
    return bf16((model.to_empty(device="cpu"), loss, (ids, ids.roll(-1, 1)), None))


MODELS = {
    "lstm": lambda: models.lstm(64, 32, 2, 1024, 10000),
    "gnmt4": lambda: models.gnmt(64, 20, 4, 1024, 8000),
    "resnet50": lambda: resnet50(32, torch.float32),
    "resnet50-bf16": lambda: resnet50(64, torch.bfloat16),
    "gpt2-medium": lambda: models.gpt2(24, 1024, 4, 512, 50257, 16),
    "gpt2-medium-bf16": lambda: bf16(models.gpt2(24, 1024, 4, 512, 50257, 16)),
    "llama-1b-bf16": llama_1b,
    "moe": lambda: models.moe(8, 1024, 8, 512, 32000, 8),
    "gpt2-medium-inference": lambda: inference(models.gpt2(24, 1024, 1, 128, 50257, 16)),
}


def main() -> None:
    out = sys.argv[1]
    torch.backends.cudnn.allow_tf32 = False  # as torch_models.py has it
    for name in sys.argv[2:] or MODELS:
        p = capture(*MODELS[name](), name=name)
        p.batch = {k: v for k, v in p.batch.items() if not v.is_floating_point()}
        folder = os.path.join(out, name)
        os.makedirs(folder, exist_ok=True)
        graph.write(p, os.path.join(folder, "graph.json"))
        p.save(os.path.join(folder, "program.pt"))
        print(name, len(p.ops), "ops", flush=True)


main()
