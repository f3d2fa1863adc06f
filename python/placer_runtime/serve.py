"""The process that answers requests for measurements: a JSON document a line (docs/pytorch.md)."""

from __future__ import annotations

import json
import os
import platform
from typing import IO, Any, Callable, Sequence

from .errors import FormatError, PlacerError

READY = "placer runtime ready 1"
FORMAT = "placer step measurement 1"
REQUEST_KEYS = frozenset({"id", "schedule", "plan", "devices", "device", "order", "steps", "repeats", "clock", "trace", "check", "brief"})


def answer(request: dict[str, Any], measure: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """The measurement that a request asks for, or {"id", "error"}: whatever it fails of, the
    next request is answered."""
    name = request.get("id")
    try:
        for key in request:
            if key not in REQUEST_KEYS:
                raise FormatError(f"request: unknown key {key!r}")
        return {"id": name, **measure(request)}
    except PlacerError as e:
        return {"id": name, "error": str(e)}
    except Exception as e:
        return {"id": name, "error": ": ".join([type(e).__name__, *str(e).splitlines()[:1]])}


def serve(runtime: str, version: str, ops: int, devices: Sequence[str], gpus: Sequence[str], pinned: bool, measure: Callable[[dict[str, Any]], dict[str, Any]], requests: IO[str], answers: IO[str]) -> None:
    """Says what it is, and answers requests until they end. gpus: the names of gpu:0..."""

    def say(doc: dict[str, Any]) -> None:
        answers.write(json.dumps(doc) + "\n")
        answers.flush()

    say({"format": READY, "ops": ops, "devices": list(devices), "gpus": list(gpus), "runtime": runtime, "version": version, "host": processor(), "pinned": pinned})
    for line in requests:
        if not line.strip():
            continue
        try:
            request = json.loads(line)
            if not isinstance(request, dict):
                raise ValueError("not an object")
        except ValueError as e:
            say({"id": None, "error": f"request: {e}"})
            continue
        say(answer(request, measure))


def cores() -> list[int]:
    """The cores that this process may use, ascending."""
    return sorted(os.sched_getaffinity(0))


def processor() -> str:
    """The processor's name as the kernel has it, else the architecture's."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            names = [line.partition(":")[2].strip() for line in f if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.machine()


def six(x: float) -> float:
    """x to six digits."""
    return float(f"{x:.6g}")
