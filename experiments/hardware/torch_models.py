"""Steps of PyTorch models on this host's first GPU, measured.

    PYTHONPATH=python python3 torch_models.py FOLDER OUT.json TIMES.json [MODEL...]

FOLDER/MODEL/program.pt is what capture_torch_models.py wrote. Of every model:

  eager   the step as PyTorch issues it, op by op
  graph   the same ops captured as one CUDA graph: the GPU's own time
  ops     each op's time on the GPU, as `placer_torch profile --devices cuda` takes
          it, but not scaled to the step

Medians; states are random; products of f32 are f32. TIMES.json gets the times of the
ops by model. What fails is told in the document, and the next model goes on.
"""
from __future__ import annotations

import json
import os
import statistics
import sys
import time
from typing import Any, Callable

import torch

from placer_torch import codegen, profile_cuda
from placer_torch.codegen import Code, name
from placer_torch.program import SOURCES, STATE, Program, Ref, load

GPU = torch.device("cuda", 0)


def sources(p: Program) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Parameters, buffers and slots of plausible values on the GPU, and the batch."""
    state = {}
    for i in p.sources(*STATE):
        o = p.ops[i]
        s = o.outputs[0]
        t = torch.empty_strided(s.shape, s.stride, dtype=s.dtype, device=GPU).zero_()
        if o.role == "parameter" and len(s.shape) > 1:
            t.normal_(0, s.shape[-1] ** -0.5)
        elif (o.role == "parameter" and o.name.endswith("weight")) or o.name.endswith("var"):
            t.fill_(1)
        state[o.name] = t
    batch = {k: v.to(GPU) for k, v in p.batch.items()}
    for i in p.sources("batch"):
        o = p.ops[i]
        if o.name not in batch:  # images, which capture_torch_models.py leaves out
            batch[o.name] = torch.randn(o.outputs[0].shape, device=GPU).to(o.outputs[0].dtype)
    return state, batch


def step_of(p: Program) -> Callable[..., Any]:
    """The whole step as one function of the sources and the optimizer's step."""
    code = Code()
    code.names["seed"] = codegen.seeder([GPU])
    free = codegen.last_uses(p, list(range(len(p.ops))), set(p.outputs))
    for i, o in enumerate(p.ops):
        if o.role in SOURCES:
            code.add(f"{name(Ref(i, 0))} = sources[{o.name!r}]")
        else:
            codegen.call(code, p, i, name, GPU)
        if i in free:
            code.add(" = ".join(name(r) for r in free[i]) + " = None")
    code.add("return [" + ", ".join(name(r) for r in p.outputs) + "]")
    return code.function("def step(sources, t):", "<step>")


def eager(p: Program, here: dict[str, torch.Tensor], repeats: int = 10) -> list[float]:
    """Seconds of steps between an event before and one behind them."""
    step = step_of(p)
    took = []
    with torch.no_grad():
        for _ in range(repeats + 3):
            a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.cuda.synchronize()
            a.record()
            step(here, 2)
            b.record()
            b.synchronize()
            took.append(a.elapsed_time(b) / 1e3)
    return took[3:]


def measure(folder: str) -> tuple[dict[str, Any], list[float]]:
    """The model's figures, and the seconds of each of its ops."""
    began = time.time()
    p = load(os.path.join(folder, "program.pt"))
    out: dict[str, Any] = {"ops": len(p.ops), "calls": sum(o.role not in SOURCES for o in p.ops)}
    state, batch = sources(p)
    out["eager_s"] = statistics.median(eager(p, {**state, **p.constants, **batch}))
    out["peak_bytes"] = torch.cuda.max_memory_allocated()
    got = profile_cuda.on_cuda(p, state, batch, GPU)
    out["graph_s"], out["sum_of_ops_s"], out["issue_s"] = got.step_s, got.step_s / got.scale, got.issue_s
    out["took_s"] = round(time.time() - began, 1)
    return out, [float(f"{x / got.scale:.4g}") for x in got.seconds]


def main() -> None:
    folder, target, ops = sys.argv[1:4]
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    doc: dict[str, Any] = {"gpu": torch.cuda.get_device_name(0), "torch": torch.__version__, "cuda": torch.version.cuda, "event_s": profile_cuda._event_seconds(), "models": {}}
    times: dict[str, list[float]] = {}
    for model in sys.argv[4:] or sorted(os.listdir(folder)):
        torch.cuda.reset_peak_memory_stats()
        try:
            doc["models"][model], times[model] = measure(os.path.join(folder, model))
        except Exception as e:  # noqa: BLE001
            doc["models"][model] = {"error": str(e).splitlines()[0][:300] if str(e) else repr(e)}
        print(model, json.dumps(doc["models"][model]), flush=True)
        torch.cuda.empty_cache()
        with open(target, "w") as f:
            json.dump(doc, f, indent=1)
            f.write("\n")
        with open(ops, "w") as f:
            json.dump(times, f)


main()
