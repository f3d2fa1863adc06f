"""The host's devices as a machine file, `placer machine 1` with the keys of docs/pytorch.md."""

from __future__ import annotations

import json
import os
from typing import Any, Callable

import torch

from .copies import Copies
from placer_runtime.files import write_text
from .threads import one_thread


def cores(c: Copies, count: int, flops: float) -> dict[str, Any]:
    """count CPU cores of this host as devices cpu:0... flops is the rate of a
    core's products."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // count
    return {
        "format": "placer machine 1",
        "name": f"cores{count}",
        "note": "Cores of one host, a pinned process each; tensors cross through shared memory, copied by the one that made them. Measured by placer_torch.",
        "models": {
            "core": {
                "kind": "cpu",
                "capacity": f"{memory} B",
                "memory_bandwidth": _rate(c.stream),
                "shared_memory_bandwidth": _rate(c.stream_shared),
                "peak": {"f32": f"{flops / 1e9:.4g} GFLOP/s"},
                "launch": _time(c.issue_s),
                "sms": 1,
                "source": "placer_torch profile: large copies, products of 512 and the smallest op on one core",
            }
        },
        "devices": [{"name": f"cpu:[0-{count - 1}]" if count > 1 else "cpu:0", "model": "core"}],
        "cables": [
            {
                "ends": [f"cpu:{a}", f"cpu:{b}"],
                "bandwidth": _rate(c.send_bandwidth),
                "latency": _time(c.send_s),
                "occupies": "sender",
                "delivery": _time(c.delivery_s),
                "receive": _time(c.receive_s),
                "receive_bandwidth": _rate(c.receive_bandwidth),
                "source": "placer_torch profile: copies between two workers",
            }
            for a in range(count)
            for b in range(a + 1, count)
        ],
    }


def cuda(devices: list[torch.device]) -> dict[str, Any]:
    """GPUs of this host: rates of the first one of each model, measured by products of
    4096 and a copy of 256 MiB, and the links between them by copies of 64 MiB and of
    4 bytes. A model's capacity is what is free on that of its GPUs where least is."""
    models: dict[str, Any] = {}
    free: dict[str, int] = {}
    for d in devices:
        name = torch.cuda.get_device_properties(d).name
        free[name] = min(free.get(name, _free(d)), _free(d))
    for d in devices:
        x = torch.cuda.get_device_properties(d)
        if x.name in models:
            continue
        peak = {kind: f"{flops / 1e9:.4g} GFLOP/s" for kind, flops in _products(d).items()}
        models[x.name] = {
            "kind": "gpu",
            "arch": f"sm_{x.major}{x.minor}",
            "capacity": f"{free[x.name]} B",
            "reserve": "600 MiB",
            "memory_bandwidth": _rate(_stream(d)),
            "peak": peak,
            "launch": "5 us",
            "sms": x.multi_processor_count,
            "source": "placer_torch profile; capacity: what was free; reserve and launch: assumptions",
        }
    links = []
    for k, a in enumerate(devices):
        for b in devices[k + 1 :]:
            latency, bandwidth = _between(a, b)
            links.append({"ends": [f"gpu:{a.index}", f"gpu:{b.index}"], "bandwidth": _rate(bandwidth), "latency": _time(latency), "source": "placer_torch profile"})
    listed = [{"name": f"gpu:{d.index}", "model": torch.cuda.get_device_properties(d).name} for d in devices]
    doc: dict[str, Any] = {"format": "placer machine 1", "name": f"cuda{len(devices)}", "models": models, "devices": listed}
    if links:
        doc["cables"] = links
    return doc


def _free(d: torch.device) -> int:
    """Bytes of d that a step may take: what nobody has, and what torch has in store here."""
    return int(torch.cuda.mem_get_info(d)[0]) + torch.cuda.memory_reserved(d) - torch.cuda.memory_allocated(d)


def _between(a: torch.device, b: torch.device) -> tuple[float, float]:
    """Latency and bandwidth of a copy from a to b, by events: the least of five."""

    def seconds(n: int) -> float:
        x, y = torch.empty(n, device=a, dtype=torch.uint8), torch.empty(n, device=b, dtype=torch.uint8)
        took = []
        for _ in range(6):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            with torch.cuda.device(a):
                start.record()
                y.copy_(x, non_blocking=True)
                end.record()
            torch.cuda.synchronize(a)
            torch.cuda.synchronize(b)
            took.append(start.elapsed_time(end) / 1e3)
        return min(took[1:])

    latency = seconds(4)
    return latency, (64 << 20) / max(seconds(64 << 20) - latency, 1e-9)


def _products(d: torch.device) -> dict[str, float]:
    """FLOP a second of products of 4096 x 4096 by type of element."""
    rates = {}
    allowed = torch.backends.cuda.matmul.allow_tf32
    x = torch.cuda.get_device_properties(d)
    try:
        for kind, dtype in {"f32": torch.float32, "tf32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}.items():
            if kind in ("tf32", "bf16") and x.major < 8:
                continue
            a = torch.ones(4096, 4096, device=d, dtype=dtype)
            torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
            rates[kind] = 2 * 4096**3 / _least(d, lambda: a @ a)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = allowed
    return rates


def _stream(d: torch.device) -> float:
    """Bytes a second read and written by a copy of 256 MiB."""
    x = torch.ones(64 << 20, device=d)
    return 2 * x.numel() * 4 / _least(d, lambda: x.clone())


def _least(d: torch.device, run: Callable[[], Any]) -> float:
    """The least time of five runs on d, by events."""
    took = []
    with torch.cuda.device(d):
        for _ in range(5):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            run()
            end.record()
            torch.cuda.synchronize()
            took.append(start.elapsed_time(end) / 1e3)
    return min(took)


def core_flops() -> float:
    """FLOP a second of products of 512 x 512 on one thread, in processor time."""
    from . import clock

    a = torch.ones(512, 512)
    best = 1e9
    with one_thread():
        for _ in range(6):
            s = clock.thread()
            a @ a
            best = min(best, clock.thread() - s)
    return 2 * 512**3 / best


def write(path: str, doc: dict[str, Any]) -> None:
    write_text(path, json.dumps(doc, indent=2) + "\n")


def _rate(bytes_per_s: float) -> str:
    return f"{bytes_per_s / 1e9:.4g} GB/s"


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.4g} us"
