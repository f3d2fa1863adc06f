"""Sessions of ONNX Runtime on one core, what its nodes take, and the list of stages."""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
import tempfile
import time
from typing import Any

import numpy as np
import onnxruntime as ort

from placer_runtime.errors import FormatError

Values = dict[str, np.ndarray]

# The types of inputs for which example makes up values, by ONNX Runtime's name.
_TYPES = {
    "tensor(float)": "float32", "tensor(float16)": "float16", "tensor(double)": "float64", "tensor(bool)": "bool",
    "tensor(int64)": "int64", "tensor(int32)": "int32", "tensor(int8)": "int8", "tensor(uint8)": "uint8",
}


@dataclasses.dataclass(frozen=True)
class Stage:
    """A model of a part, the tensors that it takes and gives, and its device."""

    path: str
    device: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def stages(path: str) -> list[Stage]:
    """Reads the list that `placer export --to onnx` writes."""
    try:
        with open(path, encoding="utf-8") as f:
            doc = json.load(f)
        if doc["format"] != "placer onnx stages 1":
            raise ValueError(f"format is {doc['format']!r}")
        folder = os.path.dirname(path)
        return [Stage(os.path.join(folder, s["file"]), s["device"], tuple(s["inputs"]), tuple(s["outputs"])) for s in doc["stages"]]
    except OSError as e:
        raise FormatError(f"{path}: {e.strerror}") from None
    except (ValueError, KeyError, TypeError) as e:
        raise FormatError(f"{path}: no list of stages: {e}") from None


def open_session(path: str, profile: str = "") -> Any:
    """A session of one thread. Nodes run as they are: a cut inside of what an optimiser
    fuses would change the last bits."""
    o = ort.SessionOptions()
    o.intra_op_num_threads = o.inter_op_num_threads = 1
    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    o.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if profile:
        o.enable_profiling, o.profile_file_prefix = True, profile
    if not os.path.isfile(path):
        raise FormatError(f"{path}: no such file")
    try:
        return ort.InferenceSession(path, o, providers=["CPUExecutionProvider"])
    except Exception as e:  # its own classes, which have no public base
        raise FormatError(f"{path}: ONNX Runtime cannot load it: {' '.join(str(e).split())}") from None


def example(session: Any, sizes: dict[str, int], seed: int = 1) -> Values:
    """Inputs of the session: small integers or normal numbers. sizes gives named dimensions,
    which are 1 without it."""
    rng = np.random.RandomState(seed)
    made = {}
    for i in session.get_inputs():
        if i.type not in _TYPES:
            raise FormatError(f"input {i.name} is {i.type}: no values can be made up for it")
        shape = [d if isinstance(d, int) else sizes.get(d, 1) for d in i.shape]
        to = np.dtype(_TYPES[i.type])
        values = rng.randn(*shape) if to.kind == "f" else rng.randint(0, 2 if to.kind == "b" else 8, shape)
        made[i.name] = np.asarray(values).astype(to)
    return made


def node_seconds(path: str, feed: Values, runs: int = 20) -> tuple[dict[str, float], float]:
    """Seconds of each node by name, from ONNX Runtime's profile, and of a request without
    one, to which they add up: what the executor adds is spread over the nodes."""
    plain = open_session(path)
    took = []
    for _ in range(runs):
        t = time.perf_counter()
        plain.run(None, feed)
        took.append(time.perf_counter() - t)
    request = min(took[2:])
    with tempfile.TemporaryDirectory() as folder:
        s = open_session(path, os.path.join(folder, "profile"))
        for _ in range(runs):
            s.run(None, feed)
        with open(s.end_profiling(), encoding="utf-8") as f:
            events = json.load(f)
    found: dict[str, list[float]] = {}
    for e in events:
        name = e.get("name", "")
        if e.get("cat") == "Node" and name.endswith("_kernel_time"):
            found.setdefault(name.removesuffix("_kernel_time"), []).append(e["dur"] / 1e6)
    seconds = {k: statistics.median(v) for k, v in found.items()}
    share = (request - sum(seconds.values())) / max(1, len(seconds))
    if share < 0:
        return {k: v * request / sum(seconds.values()) for k, v in seconds.items()}, request
    return {k: v + share for k, v in seconds.items()}, request
